// The invitations that wait for their client: each is good once, for a limited time, and ends after
// a few wrong secrets. They are kept in a file, so that a restart neither loses one nor makes one
// good again.
#pragma once

#include <array>
#include <cstddef>
#include <ctime>
#include <map>
#include <optional>
#include <string>

#include "link/certificates/invitation.h"

namespace longwire::signer {

inline constexpr size_t kMaxInvitations = 256;
inline constexpr int kMaxWrongSecrets = 5;

class Invitations {
 public:
  // `file` empty: in memory alone.
  explicit Invitations(std::string file) : file_(std::move(file)) {}

  // Reads the file. False with a sentence if it is there and cannot be read or is not whole.
  bool Load(std::string* sentence);

  // For an identity; nullopt with a sentence.
  std::optional<certificates::Secret> Add(const std::string& name, const std::string& server,
                                          std::time_t now, std::time_t until,
                                          std::string* sentence);

  struct Used {
    std::string name;
    std::string server;
  };
  // kWrong: a guess, or an invitation that is over. kExpired: the secret is right. kFailed: it is
  // not known to be used up in the file, so it is not good.
  enum class Outcome { kGood, kWrong, kExpired, kFailed };
  // Uses the invitation up that has this secret. Takes the same time for every wrong secret of an
  // invitation. A sentence for all but kGood.
  Outcome Use(const certificates::Secret& secret, std::time_t now, Used* used,
              std::string* sentence);

  size_t size() const { return waiting_.size(); }

 private:
  using Id = std::array<std::byte, 8>;  // the secret's first bytes
  struct Waiting {
    wire::Digest hash;  // of the secret: the file is of no use to who reads it
    std::time_t until = 0;
    int wrong = 0;
    std::string name;
    std::string server;  // or "-"
  };
  static Id IdOf(const certificates::Secret& secret);
  bool ReadLine(const std::string& line);
  bool Save(std::string* sentence) const;
  void Forget(std::time_t now);

  const std::string file_;
  std::map<Id, Waiting> waiting_;
};

}  // namespace longwire::signer
