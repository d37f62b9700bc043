// The files of mutual TLS, read and checked before anybody connects, so that what is wrong with
// them is said in words.
#pragma once

#include <grpcpp/security/credentials.h>

#include <memory>
#include <optional>
#include <string>

#include "link/transport/certificate.h"
#include "wire/client_settings.h"

namespace longwire::transport {

using TlsFiles = wire::IdentityFiles;

// The texts of the files, PEM.
struct TlsMaterial {
  TlsFiles files;
  std::string certificate;  // with the chain to its authority, if the file has it
  std::string key;
  std::string authority;
  Certificate own;  // what `certificate` says of its owner
};

enum class TlsRole { kClient, kServer };

// nullopt with a sentence that names the file and says what to do: a file that is missing or is not
// what it should be, a key that others can read or that belongs to another certificate, a
// certificate that is not valid now or not meant for this role.
std::optional<TlsMaterial> LoadTls(const TlsFiles& files, TlsRole role, std::string* sentence);

// From now on this process's connections speak TLS 1.3 and nothing older. False when OpenSSL does
// not take the setting. Thread-safe; the first call does it.
bool SpeakTls13Only();

// For a client's channel.
std::shared_ptr<grpc::ChannelCredentials> ClientCredentials(const TlsMaterial& material);

}  // namespace longwire::transport
