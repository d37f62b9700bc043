// What a user configures on the client's side: LONGWIRE_… environment variables, and the same keys
// as KEY=VALUE lines of /etc/longwire/client.conf; the environment wins.
#pragma once

#include <map>
#include <string>

namespace longwire::wire {

// The text without blanks at its ends.
std::string Trim(const std::string& text);

class ClientSettings {
 public:
  // Reads the file. A missing file counts as empty.
  explicit ClientSettings(const char* path = "/etc/longwire/client.conf");
  // The key's value without blanks around it; empty if it is not set.
  std::string Value(const char* key) const;

 private:
  std::map<std::string, std::string> file_;
};

// Paths of PEM files for mutual TLS: the process's certificate, its private key, and the
// certificate authority that signed the other side's certificate.
struct IdentityFiles {
  std::string certificate;
  std::string key;
  std::string authority;

  // Connections without TLS.
  bool none() const { return certificate.empty() && key.empty() && authority.empty(); }
};

// The paths in LONGWIRE_CERT, LONGWIRE_KEY and LONGWIRE_CA. If only the certificate is set, the
// other files are searched beside it. If it is not set, client.crt, client.key and ca.crt are
// searched in ~/.config/longwire and then in `system_folder`. The paths are absolute.
// LONGWIRE_CERT=none: all are empty.
IdentityFiles FindIdentityFiles(const ClientSettings& settings,
                                const std::string& system_folder = "/etc/longwire");

}  // namespace longwire::wire
