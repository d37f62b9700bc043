// Starting longwire-warden: it has to outlive the daemon, so it is started detached.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/poll_set.h"
#include "base/reason.h"
#include "server/daemon/sessions/warden_client.h"
#include "server/daemon/settings/paths.h"
#include "server/warden/service_manager.h"

namespace longwire::daemon {
namespace {

// It opens the devices before it answers.
constexpr std::chrono::seconds kWardenPatience{30};
constexpr std::chrono::milliseconds kLook{10};
constexpr const char* kSoftwareMemoryVariable = "LONGWIRE_SOFTGPU_MEMORY=";
constexpr const char* kSoftwareCountVariable = "LONGWIRE_SOFTWARE_DEVICES=";

// In the grandchild: no locks may be taken between fork and exec, so all is prepared before. The
// program keeps `life` open as long as it lives; what it starts does not inherit it (spawn.cc).
[[noreturn]] void Exec(char** arguments, char** environment, int status_pipe, int life) {
  setsid();
  pid_t child = fork();
  if (child < 0) {
    int error = errno;
    if (write(status_pipe, &error, sizeof(error)) < 0) _exit(126);
  }
  if (child != 0) _exit(child < 0 ? 1 : 0);
  int null = open("/dev/null", O_RDWR);
  if (null >= 0) dup2(null, STDIN_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  fcntl(life, F_SETFD, 0);
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

// Starts the program; false with errno when it could not be executed. *life hangs up when it ends.
bool SpawnDetached(std::vector<std::string> arguments, std::vector<std::string> environment,
                   wire::Descriptor* life) {
  int status[2], living[2];
  if (pipe2(status, O_CLOEXEC) != 0) return false;
  wire::Descriptor status_end(status[0]), status_start(status[1]);
  if (pipe2(living, O_CLOEXEC) != 0) return false;
  life->Reset(living[0]);
  wire::Descriptor life_start(living[1]);
  std::vector<char*> argument_pointers = Pointers(arguments);
  std::vector<char*> environment_pointers = Pointers(environment);
  pid_t child = fork();
  if (child == 0) {
    Exec(argument_pointers.data(), environment_pointers.data(), status_start.get(),
         life_start.get());
  }
  int error = child < 0 ? errno : 0;
  status_start.Reset();
  if (child > 0) {
    waitpid(child, nullptr, 0);
    // End of file: exec closed the other end.
    if (read(status_end.get(), &error, sizeof(error)) != sizeof(error)) error = 0;
  }
  errno = error;
  return error == 0;
}

// Waits until the warden answers at `socket`. False when it ends before, or does not answer in
// time.
bool AwaitWarden(const std::string& socket, const wire::Descriptor& life, bool* ended) {
  auto deadline = std::chrono::steady_clock::now() + kWardenPatience;
  for (*ended = false; std::chrono::steady_clock::now() < deadline;) {
    if (wire::ConnectLocal(socket).valid()) return true;
    if (*ended) return false;
    *ended = base::PollOne(life.get(), 0, kLook) != 0;
  }
  return false;
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
  const config::Workers& workers = config.workers();
  arguments.insert(arguments.end(),
                   {"--walls", config::Walls_Name(config.walls()), "--worker-uid",
                    std::to_string(workers.first_uid()), "--system-calls",
                    config::SystemCalls_Name(workers.system_calls()), "--worker-host-memory",
                    std::to_string(workers.host_memory()), "--worker-processes",
                    std::to_string(workers.processes()), "--worker-addresses",
                    workers.fixed_addresses() ? "fixed" : "random"});
  return arguments;
}

std::vector<std::string> StarterArguments(const config::Config& config) {
  const config::Workers& workers = config.workers();
  std::vector<std::string> arguments = {ProgramFolder() + "/longwire-walls",
                                        "--cgroups",
                                        "own",
                                        "--user",
                                        std::to_string(workers.first_uid()),
                                        "--host-memory",
                                        std::to_string(workers.host_memory()),
                                        "--processes",
                                        std::to_string(workers.processes())};
  const char* cache = getenv("CACHE_DIRECTORY");
  if (cache != nullptr && config.module_cache().compiled() != "none") {
    arguments.insert(arguments.end(), {"--tenants", cache});
  }
  if (config.driver().starts_with("/")) {
    arguments.insert(arguments.end(),
                     {"--show", config.driver().substr(0, config.driver().rfind('/'))});
  }
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
    // A warden that this daemon starts would see no device and end with it.
    *sentence = "no process answers at " + config.warden() +
                "; a longwired that a service manager started leaves the warden to it too: see "
                "systemctl status longwire-warden";
    return false;
  }
  std::string program = WardenProgram();
  std::vector<std::string> arguments = WardenArguments(config);
  arguments.push_back("--on-demand");
  wire::Descriptor life;
  if (!SpawnDetached(std::move(arguments), WardenEnvironment(config.software_device()), &life)) {
    *sentence = "cannot start " + program + ": " + base::ReasonOfNoThread(errno);
    return false;
  }
  bool ended = false;
  if (AwaitWarden(config.warden(), life, &ended)) return true;
  *sentence = program +
              (ended ? " ended before it answered at " : " was started, but does not answer at ") +
              config.warden() + "; longwired's log says why, above. If the driver '" +
              config.driver() +
              "' is at fault, name another by --driver or the key driver; software needs no GPU";
  return false;
}

void BecomeStarter(const config::Config& config, std::string* sentence) {
  std::vector<std::string> arguments = StarterArguments(config);
  std::vector<std::string> environment = WardenEnvironment(config.software_device());
  execve(arguments[0].c_str(), Pointers(arguments).data(), Pointers(environment).data());
  *sentence = "cannot become " + arguments[0] + ": " + base::ReasonOfNoThread(errno);
}

bool WriteWardenSettings(const config::Config& config, const std::string& path,
                         std::string* sentence) {
  std::ofstream file(path, std::ios::trunc);
  std::vector<std::string> arguments = WardenArguments(config);
  for (size_t i = 1; i + 1 < arguments.size(); i += 2) {
    file << arguments[i] << ' ' << arguments[i + 1] << '\n';
  }
  for (const std::string& variable : WardenEnvironment(config.software_device())) {
    bool ours = variable.starts_with(kSoftwareMemoryVariable) ||
                variable.starts_with(kSoftwareCountVariable);
    if (ours) file << variable << '\n';
  }
  file.close();
  chmod(path.c_str(), S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH);
  *sentence = "cannot write " + path + ": " + std::strerror(errno);
  return file.good();
}

}  // namespace longwire::daemon
