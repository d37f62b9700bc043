// The files of mutual TLS, read and checked before a connection is made, so that errors in them are
// reported in words.
#pragma once

#include <grpcpp/security/credentials.h>

#include <memory>
#include <optional>
#include <string>

#include "link/certificates/certificate.h"
#include "wire/client_settings.h"

namespace longwire::transport {

using TlsFiles = wire::IdentityFiles;

// The texts of the files, PEM.
struct TlsMaterial {
  TlsFiles files;
  std::string certificate;  // and the chain to its authority, if the file has one
  std::string key;
  std::string authority;
  Certificate own;  // `certificate`, parsed
};

enum class TlsRole { kClient, kServer };

// nullopt with a sentence that names the file and a remedy: for a file that is missing or has the
// wrong content, a key that others can read or that belongs to another certificate, a certificate
// that is not valid now or not issued for this role.
std::optional<TlsMaterial> LoadTls(const TlsFiles& files, TlsRole role, std::string* sentence);

// Restricts this process's connections to TLS 1.3. False when OpenSSL rejects the setting.
// Thread-safe; only the first call has an effect.
bool SpeakTls13Only();

// For a client's channel.
std::shared_ptr<grpc::ChannelCredentials> ClientCredentials(const TlsMaterial& material);

}  // namespace longwire::transport
