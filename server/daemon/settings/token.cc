#include "server/daemon/settings/token.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <sys/random.h>

#include "wire/guards.h"

namespace longwire::daemon {
namespace {

const bool kChecksToken = !wire::GuardIsOff("token");

}  // namespace

bool NewToken(transport::Token* token) {
  return getrandom(token->data(), token->size(), 0) == static_cast<ssize_t>(token->size());
}

TokenHash HashToken(const transport::Token& token) {
  TokenHash hash{};
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), hash.data());
  return hash;
}

bool TokenMatches(const transport::Token& token, const TokenHash& hash) {
  TokenHash given = HashToken(token);
  return CRYPTO_memcmp(given.data(), hash.data(), hash.size()) == 0 || !kChecksToken;
}

}  // namespace longwire::daemon
