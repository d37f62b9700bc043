#include "server/signer/invitations.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <sstream>

#include "link/certificates/authority.h"
#include "link/certificates/certificate.h"
#include "link/certificates/pem_files.h"
#include "wire/guards.h"

namespace longwire::signer {
namespace {

using certificates::Secret;

// An expired invitation is remembered so long, for a better sentence.
constexpr std::time_t kRememberSeconds = 24 * 3600;

const bool kIsGoodOnce = !wire::GuardIsOff("invitation");

// The id, in as many digits as a digest has: there is one reader for both.
wire::Digest Padded(std::span<const std::byte> id) {
  wire::Digest digest{};
  std::ranges::copy(id, digest.begin());
  return digest;
}

}  // namespace

Invitations::Id Invitations::IdOf(const Secret& secret) {
  Id id;
  std::copy_n(secret.begin(), id.size(), id.begin());
  return id;
}

std::optional<Secret> Invitations::Add(const std::string& name, const std::string& server,
                                       std::time_t now, std::time_t until, std::string* sentence) {
  if (!certificates::IsIdentityName(name, sentence)) return std::nullopt;
  Forget(now);
  if (waiting_.size() >= kMaxInvitations) {
    *sentence = std::to_string(kMaxInvitations) +
                " invitations wait already, which is the limit; wait until some are used or expire";
    return std::nullopt;
  }
  Secret secret;
  if (RAND_bytes(reinterpret_cast<unsigned char*>(secret.data()),
                 static_cast<int>(secret.size())) != 1) {
    *sentence = "OpenSSL has no random bytes";
    return std::nullopt;
  }
  waiting_[IdOf(secret)] = {wire::Sha256Of(secret), until, 0, name, server.empty() ? "-" : server};
  if (Save(sentence)) return secret;
  waiting_.erase(IdOf(secret));
  return std::nullopt;
}

Invitations::Outcome Invitations::Use(const Secret& secret, std::time_t now, Used* used,
                                      std::string* sentence) {
  Forget(now);
  *sentence =
      "there is no such invitation (any more): its secret is wrong, or it was used already, has "
      "expired, or ended after " +
      std::to_string(kMaxWrongSecrets) + " wrong secrets; ask for a new one (longwire invite NAME)";
  auto found = waiting_.find(IdOf(secret));
  if (found == waiting_.end()) return Outcome::kWrong;
  Waiting& waiting = found->second;
  const wire::Digest hash = wire::Sha256Of(secret);
  bool right = CRYPTO_memcmp(hash.data(), waiting.hash.data(), hash.size()) == 0;
  std::string unsaved;
  if (!right && kIsGoodOnce) {
    if (++waiting.wrong >= kMaxWrongSecrets) waiting_.erase(found);
    Save(&unsaved);
    return Outcome::kWrong;
  }
  if (now > waiting.until) {
    *sentence = "the invitation of '" + waiting.name + "' expired on " +
                transport::DateText(waiting.until) + "; ask for a new one (longwire invite " +
                waiting.name + ")";
    return Outcome::kExpired;
  }
  *used = {waiting.name, waiting.server == "-" ? "" : waiting.server};
  if (!kIsGoodOnce) return Outcome::kGood;
  waiting_.erase(found);
  if (Save(&unsaved)) return Outcome::kGood;
  *sentence = "the signer cannot keep its state (" + unsaved +
              "), so it signs nothing; its administrator has to see to that, and to invite again";
  return Outcome::kFailed;
}

void Invitations::Forget(std::time_t now) {
  std::erase_if(waiting_,
                [&](const auto& entry) { return entry.second.until + kRememberSeconds < now; });
  // What has expired does not keep others out.
  if (waiting_.size() < kMaxInvitations) return;
  std::erase_if(waiting_, [&](const auto& entry) { return entry.second.until < now; });
}

bool Invitations::Save(std::string* sentence) const {
  if (file_.empty()) return true;
  std::ostringstream text;
  for (const auto& [id, waiting] : waiting_) {
    text << wire::Hexadecimal(Padded(id)) << ' ' << wire::Hexadecimal(waiting.hash) << ' '
         << waiting.until << ' ' << waiting.wrong << ' ' << waiting.name << ' ' << waiting.server
         << '\n';
  }
  text << "end\n";  // a file that was cut off has none
  return certificates::WriteText(file_, text.str(), certificates::Readers::kOwner, true, sentence);
}

bool Invitations::ReadLine(const std::string& line) {
  std::istringstream words(line);
  std::string id, hash;
  wire::Digest padded;
  Waiting waiting;
  if (!(words >> id >> hash >> waiting.until >> waiting.wrong >> waiting.name >> waiting.server) ||
      !wire::ParseHexadecimal(id, &padded) || !wire::ParseHexadecimal(hash, &waiting.hash) ||
      waiting_.size() >= kMaxInvitations) {
    return false;
  }
  waiting_[IdOf(padded)] = waiting;
  return true;
}

bool Invitations::Load(std::string* sentence) {
  if (file_.empty() || (access(file_.c_str(), F_OK) != 0 && errno == ENOENT)) return true;
  auto text = certificates::ReadText(file_, sentence);
  if (!text) return false;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (line == "end") return true;
    if (!ReadLine(line)) break;
  }
  *sentence = file_ + " is damaged; remove it, and invite those again who have not joined yet";
  return false;
}

}  // namespace longwire::signer
