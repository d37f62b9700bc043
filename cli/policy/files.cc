#include "cli/policy/files.h"

#include <cerrno>
#include <fstream>
#include <iterator>

#include "base/reason.h"
#include "policy/object.h"

namespace longwire::cli {

std::optional<std::string> ReadPolicyFile(const std::string& path, std::string* sentence) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file.is_open() || file.bad() || text.empty()) {
    *sentence = path + " cannot be read: " +
                (errno == 0 ? std::string("it is empty") : base::Reason(errno));
    return std::nullopt;
  }
  if (text.size() <= policy::kMaxObjectBytes) return text;
  *sentence = path + " is larger than 1 MiB, which no policy is";
  return std::nullopt;
}

}  // namespace longwire::cli
