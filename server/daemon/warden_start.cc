// Starting longwire-warden: it has to outlive the daemon, so it is nobody's child.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "server/daemon/paths.h"
#include "server/daemon/warden_client.h"
#include "server/warden/service_manager.h"

namespace longwire::daemon {
namespace {

// It opens the devices before it answers.
constexpr std::chrono::seconds kWardenPatience{30};
constexpr std::chrono::milliseconds kLook{10};
constexpr const char* kSoftwareMemoryVariable = "LONGWIRE_SOFTGPU_MEMORY=";
constexpr const char* kSoftwareCountVariable = "LONGWIRE_SOFTWARE_DEVICES=";

// In the grandchild: no locks may be taken between fork and exec, so all is prepared before.
[[noreturn]] void Exec(char** arguments, char** environment, int status_pipe) {
  setsid();
  pid_t child = fork();
  if (child != 0) _exit(child < 0 ? 1 : 0);
  int null = open("/dev/null", O_RDWR);
  if (null >= 0) dup2(null, STDIN_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  execve(arguments[0], arguments, environment);
  int error = errno;
  if (write(status_pipe, &error, sizeof(error)) < 0) _exit(126);
  _exit(127);
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Starts the program; false with errno when it could not be executed.
bool SpawnDetached(std::vector<std::string> arguments, std::vector<std::string> environment) {
  int pipe_ends[2];
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return false;
  std::vector<char*> argument_pointers = Pointers(arguments);
  std::vector<char*> environment_pointers = Pointers(environment);
  pid_t child = fork();
  if (child == 0) Exec(argument_pointers.data(), environment_pointers.data(), pipe_ends[1]);
  close(pipe_ends[1]);
  int error = child < 0 ? errno : 0;
  if (child > 0) {
    waitpid(child, nullptr, 0);
    // End of file: exec closed the other end.
    if (read(pipe_ends[0], &error, sizeof(error)) != sizeof(error)) error = 0;
  }
  close(pipe_ends[0]);
  errno = error;
  return error == 0;
}

std::string WardenProgram() { return ProgramFolder() + "/longwire-warden"; }

std::vector<std::string> WardenArguments(const config::Config& config) {
  std::vector<std::string> arguments = {WardenProgram(),
                                        "--socket",
                                        config.warden(),
                                        "--driver",
                                        config.driver(),
                                        "--warm-workers",
                                        std::to_string(config.warm_workers())};
  std::string devices, warm;
  for (const config::Device& device : config.devices()) {
    std::string ordinal = std::to_string(device.device());
    devices += (devices.empty() ? "" : ",") + ordinal;
    if (!device.has_warm_workers()) continue;
    warm += (warm.empty() ? "" : ",") + ordinal + "=" + std::to_string(device.warm_workers());
  }
  if (!devices.empty()) arguments.insert(arguments.end(), {"--devices", devices});
  const std::string& compiled = config.module_cache().compiled();
  if (compiled != "none") arguments.insert(arguments.end(), {"--compile-cache", compiled});
  if (!warm.empty()) arguments.insert(arguments.end(), {"--warm-workers-of", warm});
  return arguments;
}

// The daemon's own, and what the software device reads. One is its own number of devices.
std::vector<std::string> WardenEnvironment(const config::SoftwareDevice& device) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string_view variable = *entry;
    bool replaced = (device.has_memory() && variable.starts_with(kSoftwareMemoryVariable)) ||
                    (device.count() > 1 && variable.starts_with(kSoftwareCountVariable));
    if (!replaced) environment.emplace_back(variable);
  }
  if (device.has_memory()) {
    environment.push_back(kSoftwareMemoryVariable + std::to_string(device.memory()));
  }
  if (device.count() > 1) {
    environment.push_back(kSoftwareCountVariable + std::to_string(device.count()));
  }
  return environment;
}

}  // namespace

bool StartWarden(const config::Config& config, std::string* sentence) {
  if (service::Manager::Ours().present()) {
    // Ours would see no device and end with us.
    *sentence = "nobody answers at " + config.warden() +
                "; a longwired that a service manager started leaves the warden to it too: see "
                "systemctl status longwire-warden";
    return false;
  }
  std::string program = WardenProgram();
  std::vector<std::string> arguments = WardenArguments(config);
  arguments.push_back("--on-demand");
  if (!SpawnDetached(std::move(arguments), WardenEnvironment(config.software_device()))) {
    *sentence = "cannot start " + program + ": " + std::strerror(errno);
    return false;
  }
  auto deadline = std::chrono::steady_clock::now() + kWardenPatience;
  while (std::chrono::steady_clock::now() < deadline) {
    if (wire::ConnectLocal(config.warden()).valid()) return true;
    std::this_thread::sleep_for(kLook);
  }
  *sentence =
      program + " was started, but does not answer at " + config.warden() + "; it says why above";
  return false;
}

void BecomeWarden(const config::Config& config, std::string* sentence) {
  std::vector<std::string> arguments = WardenArguments(config);
  std::vector<std::string> environment = WardenEnvironment(config.software_device());
  execve(arguments[0].c_str(), Pointers(arguments).data(), Pointers(environment).data());
  *sentence = "cannot become " + arguments[0] + ": " + std::strerror(errno);
}

}  // namespace longwire::daemon
