#include "client-shim/door.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <thread>

#include "longwire/call_ids.h"

namespace longwire::shim {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kOpenTime{5};
constexpr std::chrono::milliseconds kDoorPause{5};  // between looks whether the door is open

// Variables that the driver reads: they must mean the same in the worker.
constexpr const char* kDriverVariables[] = {"CUDA_DEVICE_MAX_CONNECTIONS",
                                            "CUDA_MODULE_LOADING",
                                            "CUDA_FORCE_PTX_JIT",
                                            "CUDA_DISABLE_PTX_JIT",
                                            "CUDA_CACHE_DISABLE",
                                            "CUDA_CACHE_MAXSIZE",
                                            "CUDA_FORCE_JIT",
                                            "CUDA_DISABLE_JIT",
                                            "CUDA_MODULE_DATA_LOADING",
                                            "CUDA_SCALE_LAUNCH_QUEUES"};

uint64_t Fnv64(const std::string& text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : text) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

// A file's text, at most what a certificate with its chain takes.
std::string TextOf(const std::string& path) {
  std::string text(64 << 10, '\0');
  std::ifstream file(path);
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

// A folder of this user that nobody else can write to, made if it is not there.
bool TrustedFolder(const std::string& path) {
  if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return false;
  struct stat status;
  return lstat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid() && (status.st_mode & 022) == 0;
}

uint32_t HighestCall() {
  uint32_t highest = 0;
  for (uint16_t number = 1; number < wire::kCallNumbers; ++number) {
    if (strcmp(CallName(static_cast<CallId>(number)), "?") != 0) highest = number;
  }
  return highest;
}

std::string ProgramName() {
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  return length > 0 ? std::string(path, static_cast<size_t>(length)) : "";
}

std::vector<std::byte> EncodeRequest(const Options& options,
                                     const std::vector<wire::Window>& windows) {
  wire::OpenRequest request;
  request.pid = static_cast<uint32_t>(getpid());
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  request.host = host;
  request.program = ProgramName();
  request.call_count = HighestCall() + 1;
  for (const char* name : kDriverVariables) {
    const char* value = getenv(name);
    if (value != nullptr) request.environment.push_back(std::string(name) + "=" + value);
  }
  // For the daemon: the worker has its devices by then.
  if (!options.devices.empty())
    request.environment.push_back("LONGWIRE_DEVICES=" + options.devices);
  request.windows = windows;
  wire::Writer writer;
  request.Encode(writer);
  return {writer.data(), writer.data() + writer.size()};
}

// Connects, starting a link when there is none.
wire::Descriptor Knock(const Options& options, Clock::time_point deadline, std::string* sentence) {
  constexpr const char* kLocal = "unix:";
  if (options.server.rfind(kLocal, 0) == 0) {
    std::string path = options.server.substr(strlen(kLocal));
    wire::Descriptor door = wire::ConnectLocal(path);
    if (!door.valid()) *sentence = "nobody answers at " + path + ": " + strerror(errno);
    return door;
  }
  std::string path = LinkDoorPath(options, sentence);
  if (path.empty()) return {};
  wire::Descriptor door = wire::ConnectLocal(path);
  if (door.valid()) return door;
  if (!StartLink(options, path, sentence)) return {};
  while (!door.valid() && Clock::now() < deadline) {
    std::this_thread::sleep_for(kDoorPause);
    door = wire::ConnectLocal(path);
  }
  if (!door.valid()) *sentence = "longwire-link did not start (door " + path + ")";
  return door;
}

bool TakeReply(wire::Message& message, SessionParts* parts, std::string* sentence) {
  wire::Reader reader(message.bytes);
  if (parts->reply.Decode(reader) != wire::WireResult::kOk) {
    *sentence = "the answer of the server cannot be read; is it a longwired of this version?";
    return false;
  }
  if (parts->reply.code != 0) return true;
  if (message.descriptors.size() < 2) {
    *sentence = "the server opened a session without its rings";
    return false;
  }
  parts->up = wire::RingMemory::Map(message.descriptors[0].Release());
  parts->down = wire::RingMemory::Map(message.descriptors[1].Release());
  if (parts->up == nullptr || parts->down == nullptr) {
    *sentence = "the server's rings cannot be mapped";
    return false;
  }
  return true;
}

}  // namespace

std::string LinkDoorPath(const Options& options, std::string* sentence) {
  std::string folder = options.runtime_directory;
  const char* runtime = getenv("XDG_RUNTIME_DIR");
  if (folder.empty() && runtime != nullptr && access(runtime, W_OK) == 0) {
    folder = std::string(runtime) + "/longwire";
  }
  if (folder.empty()) folder = "/tmp/longwire-" + std::to_string(geteuid());
  if (!TrustedFolder(folder)) {
    *sentence = folder + " is not a folder of this user alone; set LONGWIRE_RUNTIME_DIR to one";
    return "";
  }
  char name[64];
  const wire::IdentityFiles& files = options.identity;
  // The certificate's text too: a link stays who it was when it started.
  uint64_t hash =
      Fnv64(options.server + "\n" + files.certificate + "\n" + files.key + "\n" + files.authority +
            "\n" + options.token_file + "\n" + TextOf(files.certificate));
  snprintf(name, sizeof(name), "/link-%016llx.sock", static_cast<unsigned long long>(hash));
  return folder + name;
}

bool OpenSession(const Options& options, const std::vector<wire::Window>& windows,
                 SessionParts* parts, std::string* sentence) {
  Clock::time_point deadline = Clock::now() + kOpenTime;
  wire::Descriptor door = Knock(options, deadline, sentence);
  std::string to = "cannot reach " + options.server + ": ";
  if (!door.valid()) {
    *sentence = to + *sentence;
    return false;
  }
  if (!wire::SendMessage(door.get(), EncodeRequest(options, windows))) {
    *sentence = to + "the door closed";
    return false;
  }
  auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  bool closed = false;
  auto message = wire::ReceiveMessage(door.get(), std::max(left, kDoorPause), &closed);
  if (!message) {
    *sentence = to + (closed ? "the door closed" : "no answer within 5 seconds");
    return false;
  }
  if (!TakeReply(*message, parts, sentence)) return false;
  parts->socket = std::move(door);
  return true;
}

}  // namespace longwire::shim
