#include "link/certificates/invitation.h"

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "link/certificates/certificate.h"

namespace longwire::certificates {
namespace {

constexpr size_t kParts = 3;
constexpr size_t kMaxLine = 512;
constexpr size_t kMaxHost = 253;  // of a name in the DNS

std::vector<std::string> Split(std::string_view line) {
  std::vector<std::string> parts;
  for (size_t start = 0; start <= line.size();) {
    size_t end = std::min(line.find('/', start), line.size());
    parts.emplace_back(line.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

// A name or a number; it is printed, too.
bool IsHost(const std::string& host) {
  auto plain = [](unsigned char c) {
    return isalnum(c) != 0 ||
           std::string_view("-._:%").find(static_cast<char>(c)) != std::string_view::npos;
  };
  return host.size() <= kMaxHost && std::ranges::all_of(host, plain);
}

}  // namespace

std::string Invitation::Line() const {
  return signer.Text() + "/" + wire::Hexadecimal(authority) + "/" + wire::Hexadecimal(secret);
}

std::optional<Invitation> ParseInvitation(std::string_view line, std::string* sentence) {
  Invitation invitation;
  std::vector<std::string> parts = line.size() <= kMaxLine ? Split(line) : Split("");
  if (parts.size() != kParts || !wire::ParseHexadecimal(parts[1], &invitation.authority) ||
      !wire::ParseHexadecimal(parts[2], &invitation.secret)) {
    *sentence =
        "this is no invitation: one is ADDRESS/AUTHORITY/SECRET, with 64 hexadecimal digits in "
        "each of the last two; copy the whole line that longwire invite printed";
    return std::nullopt;
  }
  auto address = transport::ParseAddress(parts[0], sentence, kSignerPort);
  if (!address) return std::nullopt;
  if (!IsHost(address->host)) {
    *sentence = "this is no invitation: its address has characters that no host's name has";
    return std::nullopt;
  }
  invitation.signer = *address;
  return invitation;
}

std::optional<wire::Digest> Fingerprint(const std::string& certificate) {
  transport::CertificatePointer parsed = transport::ParseCertificate(certificate);
  wire::Digest digest;
  unsigned int length = 0;
  if (parsed == nullptr ||
      X509_digest(parsed.get(), EVP_sha256(), reinterpret_cast<unsigned char*>(digest.data()),
                  &length) != 1) {
    return std::nullopt;
  }
  return digest;
}

}  // namespace longwire::certificates
