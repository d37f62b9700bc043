#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <sstream>
#include <thread>

#include "base/environment.h"
#include "base/poll_set.h"
#include "cli/program_environment.h"
#include "cli/remedies.h"
#include "cli/text.h"
#include "cli/tried_program.h"
#include "wire/socket.h"

namespace longwire::cli {
namespace {

using Clock = std::chrono::steady_clock;

// cuInit waits 5 s for a session, and on a device that others use copies may have to wait.
constexpr std::chrono::seconds kPatience{20};
constexpr std::chrono::milliseconds kEndLook{20};
constexpr size_t kMaxOutputBytes = 64 << 10;
constexpr std::string_view kVoice = "longwire: ";  // of the client's library
constexpr const char* kUnknown =
    "LONGWIRE_LOG=1 with any program prints more; see the log of longwired";

struct Pipe {
  wire::Descriptor read, write;
};

bool MakePipe(Pipe* made) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return false;
  made->read.Reset(ends[0]);
  made->write.Reset(ends[1]);
  return true;
}

struct Outcome {
  std::string out, err;
  int status = 0;  // as waitpid returns it
  bool hung = false;
};

// This process's variables and those of a program, without those that print more on standard error.
std::vector<std::string> Environment(const std::string& server, const std::string& library) {
  std::map<std::string, std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    std::string text = *variable;
    size_t equals = std::min(text.find('='), text.size());
    all[text.substr(0, equals)] = text.substr(std::min(equals + 1, text.size()));
  }
  for (const auto& [name, value] : ProgramVariables(server, library)) all[name] = value;
  for (const char* name : {"LONGWIRE_TRACE", "LONGWIRE_LOG"}) all[name] = "";
  std::vector<std::string> words;
  for (const auto& [name, value] : all) words.push_back(name + "=" + value);
  return words;
}

std::vector<char*> Pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Not by fork: gRPC has started threads.
int Spawn(const std::string& server, const std::string& library, Pipe* out, Pipe* err,
          pid_t* child) {
  std::vector<std::string> words = {"longwire", kTriedProgram, library + "/libcuda.so.1"};
  std::vector<std::string> variables = Environment(server, library);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out->write.get(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, err->write.get(), STDERR_FILENO);
  posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
  int error = posix_spawn(child, "/proc/self/exe", &actions, nullptr, Pointers(words).data(),
                          Pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  out->write.Reset();
  err->write.Reset();
  return error;
}

// Appends what there is to read; false at the end of it.
bool Take(const wire::Descriptor& from, std::string* to) {
  char bytes[4096];
  ssize_t got = read(from.get(), bytes, sizeof bytes);
  if (got > 0 && to->size() < kMaxOutputBytes) to->append(bytes, static_cast<size_t>(got));
  return got > 0 || (got < 0 && errno == EINTR);
}

void Listen(Clock::time_point deadline, Pipe* out, Pipe* err, Outcome* outcome) {
  base::PollSet set;
  while (out->read.valid() || err->read.valid()) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) return;
    set.Clear();
    base::PollSet::Entry output = set.Add(out->read.get());
    base::PollSet::Entry errors = set.Add(err->read.get());
    if (set.Wait(left) <= 0) continue;
    if (set.Ready(output) && !Take(out->read, &outcome->out)) out->read.Reset();
    if (set.Ready(errors) && !Take(err->read, &outcome->err)) err->read.Reset();
  }
}

void Await(pid_t child, Clock::time_point deadline, Outcome* outcome) {
  while (true) {
    pid_t ended = waitpid(child, &outcome->status, outcome->hung ? 0 : WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) return;
    if (!outcome->hung && Clock::now() >= deadline) {
      outcome->hung = true;
      kill(child, SIGKILL);
    }
    if (!outcome->hung) std::this_thread::sleep_for(kEndLook);
  }
}

// The rest of the last line that begins with the word.
std::string Behind(const std::string& text, const std::string& word) {
  std::istringstream lines(text);
  std::string found;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(word + " ")) found = Printable(line.substr(word.size() + 1));
  }
  return found;
}

std::vector<std::string> SaidByLibrary(const std::string& text) {
  std::istringstream lines(text);
  std::vector<std::string> said;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kVoice)) said.push_back(Printable(line.substr(kVoice.size())));
  }
  return said;
}

// The step at which it was ended.
std::string Where(const Outcome& outcome) {
  std::string call = Behind(outcome.out, "calls");
  return call.empty() ? "loading libcuda.so.1" : call;
}

void ReportFailure(const Outcome& outcome, const std::string& library, Report* report) {
  std::vector<std::string> said = SaidByLibrary(outcome.err);
  const std::string unloadable = Behind(outcome.out, "unloadable");
  const std::string failed = Behind(outcome.out, "failed");
  const std::string answer = failed.empty() ? "" : " (" + failed + ")";
  const char* visible = base::Environment("CUDA_VISIBLE_DEVICES");
  if (!unloadable.empty()) {
    report->Bad("programs cannot load " + library + "/libcuda.so.1: " + unloadable,
                "install longwire-client again, for this kind of host");
  } else if (outcome.hung) {
    report->Bad(
        "a program that does what every program does hung in " + Where(outcome) + " for " +
            std::to_string(kPatience.count()) + " s",
        "see with longwire status whether others keep the devices busy; " + std::string(kUnknown));
  } else if (WIFSIGNALED(outcome.status)) {
    report->Bad("a program that does what every program does was ended by signal " +
                    std::to_string(WTERMSIG(outcome.status)) + " in " + Where(outcome),
                "install longwire-client again; " + std::string(kUnknown));
  } else if (!said.empty()) {
    report->Bad("every program fails: " + said.back() + answer, RemedyFor(said.back(), kUnknown));
  } else if (visible != nullptr) {
    report->Bad(
        "every program fails: " + failed + "; CUDA_VISIBLE_DEVICES is '" + Printable(visible) + "'",
        "unset CUDA_VISIBLE_DEVICES, or let it name devices that the server lends");
  } else {
    report->Bad("every program fails: " + (failed.empty() ? "it said nothing" : failed), kUnknown);
  }
}

}  // namespace

void TryProgram(const std::string& server, Report* report) {
  report->Title("a program on this host");
  const std::string library = LibraryFolder();
  if (library.empty()) return;  // reported already
  std::fflush(stdout);
  Pipe out, err;
  pid_t child = -1;
  int error = MakePipe(&out) && MakePipe(&err) ? Spawn(server, library, &out, &err, &child) : errno;
  if (error != 0) {
    report->Bad(std::string("no process can be started: ") + std::strerror(error),
                "check this host's limits on processes and open files (ulimit -a)");
    return;
  }
  Outcome outcome;
  const auto deadline = Clock::now() + kPatience;
  Listen(deadline, &out, &err, &outcome);
  Await(child, deadline, &outcome);
  const std::string devices = Behind(outcome.out, "devices");
  if (outcome.hung || outcome.status != 0 || devices.empty()) {
    return ReportFailure(outcome, library, report);
  }
  report->Good("it loads libcuda.so.1, sees " + devices +
               (devices == "1" ? " device" : " devices") + " and copies bytes there and back");
  for (const std::string& said : SaidByLibrary(outcome.err)) {
    report->Note("the library reports: " + said);
  }
}

}  // namespace longwire::cli
