// The daemon's side of mutual TLS: its certificate, which can be replaced while it runs.
#pragma once

#include <grpc/grpc_security.h>
#include <grpcpp/security/server_credentials.h>

#include <ctime>
#include <memory>
#include <optional>
#include <string>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "link/transport/tls_files.h"

namespace longwire::daemon {

class TlsServerCredentials final : public grpc::ServerCredentials {
 public:
  // nullptr with a sentence when a file is invalid.
  static std::shared_ptr<TlsServerCredentials> Make(const transport::TlsFiles& files,
                                                    std::string* sentence);
  ~TlsServerCredentials() override;

  // Reads the files again, for connections from now on. False with a sentence, and nothing changes,
  // when one is invalid. Thread-safe.
  bool Reload(const transport::TlsFiles& files, std::string* sentence);

  // What is in force. Thread-safe.
  transport::TlsMaterial material();

  // When the server's certificate expires. Thread-safe.
  std::time_t expires();

  // True if the present authority signed this chain (PEM, the client's own certificate first). For
  // connections that were made under an earlier authority. Thread-safe.
  bool Trusts(const std::string& chain);

  // True if the present authority signed this chain, which need not come from a connection of this
  // server's. Thread-safe.
  bool HasSigned(const std::string& chain);

  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  explicit TlsServerCredentials(transport::TlsMaterial material);
  int AddPortToServer(const std::string& address, grpc_server* server) override;
  // Called by gRPC when a connection comes.
  static grpc_ssl_certificate_config_reload_status Fetch(
      void* self, grpc_ssl_server_certificate_config** config);
  grpc_ssl_certificate_config_reload_status FetchChanged(
      grpc_ssl_server_certificate_config** config);

  grpc_server_credentials* credentials_ = nullptr;
  base::Mutex mutex_{base::ranks::kServerCredentials};
  transport::TlsMaterial material_ LONGWIRE_GUARDED_BY(mutex_);
  bool changed_ LONGWIRE_GUARDED_BY(mutex_) = true;  // gRPC has not fetched it yet
  // Existing connections may have been checked against an earlier authority.
  bool another_authority_ LONGWIRE_GUARDED_BY(mutex_) = false;
};

}  // namespace longwire::daemon
