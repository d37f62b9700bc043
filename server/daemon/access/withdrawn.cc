#include "server/daemon/access/withdrawn.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <limits>
#include <span>
#include <sstream>

#include "base/read_write.h"
#include "base/reason.h"
#include "wire/descriptors.h"
#include "wire/number.h"

namespace longwire::daemon {
namespace {

constexpr const char* kServer = "server";
constexpr const char* kDevice = "device";
constexpr size_t kTextLimit = size_t{64} << 10;

std::string TextOf(const Withdrawn& withdrawn) {
  std::ostringstream text;
  if (withdrawn.server) text << kServer << "\n";
  for (int32_t device : withdrawn.devices) text << kDevice << " " << device << "\n";
  return text.str();
}

bool ReadLine(const std::string& line, Withdrawn* withdrawn) {
  if (line == kServer) return withdrawn->server = true;
  const size_t space = line.find(' ');
  if (space == std::string::npos || line.substr(0, space) != kDevice) return false;
  auto device = wire::ParseNumber(line.substr(space + 1), 0, std::numeric_limits<int32_t>::max());
  if (device) withdrawn->devices.insert(static_cast<int32_t>(*device));
  return device.has_value();
}

}  // namespace

std::string WithdrawnPath(const std::string& warden_socket) { return warden_socket + ".withdrawn"; }

std::optional<Withdrawn> ReadWithdrawn(const std::string& path, std::string* sentence) {
  Withdrawn withdrawn;
  wire::Descriptor file = wire::OpenFile(path.c_str(), O_RDONLY);
  if (!file.valid() && errno == ENOENT) return withdrawn;
  *sentence = path + " cannot be read: " + base::Reason(errno);
  if (!file.valid()) return std::nullopt;
  std::istringstream lines(wire::ReadFile(path.c_str(), kTextLimit));
  for (std::string line; std::getline(lines, line);) {
    if (ReadLine(line, &withdrawn)) continue;
    *sentence = path + " has a line that is not understood: '" + line + "'";
    return std::nullopt;
  }
  return withdrawn;
}

bool WriteWithdrawn(const std::string& path, const Withdrawn& withdrawn) {
  const std::string text = TextOf(withdrawn), made = path + ".new";
  wire::Descriptor file = wire::OpenFile(made.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const bool whole = file.valid() && base::WriteAll(file.get(), std::as_bytes(std::span(text)));
  if (whole && rename(made.c_str(), path.c_str()) == 0) return true;
  const int error = errno;
  unlink(made.c_str());
  errno = error;
  return false;
}

}  // namespace longwire::daemon
