#include "server/pool/following.h"

#include <algorithm>
#include <ctime>

namespace longwire::pool {
namespace {

constexpr uint64_t kStep = 10;  // seconds
constexpr const char* kNone = "-";

}  // namespace

uint64_t BootSeconds() {
  timespec time{};
  clock_gettime(CLOCK_BOOTTIME, &time);
  return static_cast<uint64_t>(time.tv_sec);
}

bool Following::Hear(const Withdrawal* told, uint64_t now) {
  const std::string number = told == nullptr ? "" : told->number();
  if (number == number_) {
    // The state file may be of the time before the machine began anew.
    if (told != nullptr) end_ = std::min(end_, now + told->seconds());
    return false;
  }
  number_ = number;
  const bool ends = told != nullptr && told->drain() && told->seconds() != 0;
  end_ = ends ? now + told->seconds() : 0;
  return true;
}

uint64_t Following::Left(uint64_t now) const {
  if (end_ <= now) return 0;
  return (end_ - now + kStep - 1) / kStep * kStep;
}

std::string Following::Text() const {
  return (number_.empty() ? kNone : number_) + " " + std::to_string(end_);
}

void Following::Read(std::istream& text) {
  std::string number;
  uint64_t end = 0;
  if (!(text >> number >> end) || number == kNone) return;
  number_ = number;
  end_ = end;
}

}  // namespace longwire::pool
