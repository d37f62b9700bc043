// What a user configures on the client's side: LONGWIRE_… environment variables, and the same keys
// as KEY=VALUE lines of /etc/longwire/client.conf; the environment wins.
#pragma once

#include <map>
#include <string>

namespace longwire::wire {

class ClientSettings {
 public:
  // Reads the file; one that is not there is empty.
  explicit ClientSettings(const char* path = "/etc/longwire/client.conf");
  // Without blanks around it; empty when nothing says.
  std::string Value(const char* key) const;

 private:
  std::map<std::string, std::string> file_;
};

// Paths of the PEM files by which a process shows who it is and knows whom to trust: its
// certificate, the private key to it, and the authority that signed the other side's certificate.
struct IdentityFiles {
  std::string certificate;
  std::string key;
  std::string authority;

  // Connections without TLS.
  bool none() const { return certificate.empty() && key.empty() && authority.empty(); }
};

// LONGWIRE_CERT, LONGWIRE_KEY and LONGWIRE_CA; what they leave open is looked for beside the
// certificate, and without a certificate in ~/.config/longwire and then in `system_folder`:
// client.crt, client.key, ca.crt. Absolute paths. LONGWIRE_CERT=none: none.
IdentityFiles FindIdentityFiles(const ClientSettings& settings,
                                const std::string& system_folder = "/etc/longwire");

}  // namespace longwire::wire
