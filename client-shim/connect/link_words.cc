#include "client-shim/connect/link_words.h"

#include <fcntl.h>

#include <string_view>
#include <thread>

namespace longwire::shim {
namespace {

constexpr size_t kLongestText = 4096;
constexpr std::string_view kSpeaker = "longwire-link: ";

}  // namespace

int LinkWords::Open() {
  if (!wire::LocalPair(&heard_, &said_)) return -1;
  return said_.get();
}

bool LinkWords::Wait(std::chrono::milliseconds time) {
  if (!heard_.valid() || over_) {
    std::this_thread::sleep_for(time);
    return true;
  }
  auto words = wire::ReceiveMessage(heard_.get(), time, &over_);
  if (words && text_.size() < kLongestText) {
    text_.append(reinterpret_cast<const char*>(words->bytes.data()), words->bytes.size());
  }
  return !over_ || text_.empty();
}

std::string LinkWords::Sentence() const {
  if (text_.empty()) {
    return over_ ? "it ended before it served programs" : "it has not answered in time";
  }
  size_t end = text_.find_last_not_of('\n') + 1;
  size_t before = end == 0 ? std::string::npos : text_.rfind('\n', end - 1);
  std::string line = before == std::string::npos ? text_.substr(0, end)
                                                 : text_.substr(before + 1, end - before - 1);
  return line.starts_with(kSpeaker) ? line.substr(kSpeaker.size()) : line;
}

}  // namespace longwire::shim
