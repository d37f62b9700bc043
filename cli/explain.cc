#include "cli/explain.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>

#include "cli/json/json_object.h"
#include "cli/program_notice.h"
#include "cli/run.h"
#include "client-shim/entry/interoperation_names.h"
#include "longwire/call_ids.h"
#include "wire/limits.h"

namespace longwire::cli {
namespace {

// How the client's library begins what it says, and says that it refuses something.
constexpr std::string_view kVoice = "longwire: ";
constexpr std::string_view kRefusal = " is not supported: ";
// What it says, with LONGWIRE_LOG, when it has a session; and who speaks before the program starts.
constexpr std::string_view kOpened = "a session is open";
constexpr std::string_view kStarter = "longwire run: ";

#define NAME(name) #name,
constexpr std::string_view kInteroperation[] = {LONGWIRE_INTEROPERATION_NAMES(NAME)};
#undef NAME

// OpenGL, EGL and VDPAU have headers of their own: refused as what they are for.
std::optional<CallId> FindCall(std::string_view name) {
  if (std::ranges::find(kInteroperation, name) != std::end(kInteroperation)) {
    return CallId::cuGraphicsMapResources;
  }
  for (uint16_t number = 1; number < wire::kCallNumbers; ++number) {
    auto id = static_cast<CallId>(number);
    if (name == CallName(id) && !CallIsPrivate(id)) return id;
  }
  return std::nullopt;
}

const char* Becomes(CallId id) {
  switch (CallKind(id)) {
    case CallKindValue::kAtOnce:
      return "works: it is queued and returns at once";
    case CallKindValue::kAfterReply:
      return "works: it waits for the server's answer";
    case CallKindValue::kLocal:
      return "works: it is answered on this host";
    default:
      return "is refused with CUDA_ERROR_NOT_SUPPORTED (801)";
  }
}

// What the client's library said on the program's standard error.
class Listener {
 public:
  void Line(const std::string& line) {
    bool ours = line.starts_with(kVoice);
    if (ours && line.find(kOpened) != std::string::npos) {
      opened_ = true;
      return;
    }
    if (ours) last_ = line.substr(kVoice.size());
    if (line.starts_with(kStarter)) HearStarter(line.substr(kStarter.size()));
    if (ours && line.find(kRefusal) != std::string::npos) {
      refused_.push_back(line.substr(kVoice.size()));
    } else {
      std::fprintf(stderr, "%s\n", line.c_str());
    }
  }

  // The exit status of all.
  int Report(int status) {
    std::string missed;
    if (!opened_ && !not_started_.empty()) {
      missed = "The program was not started: " + not_started_;
    } else if (!opened_ && !last_.empty() && refused_.empty()) {
      missed = "The program got no session, so nothing is known of it: " + last_;
    } else if (!opened_ && !notice_.empty()) {
      missed = "The program never opened a session: " + notice_;
    } else if (!opened_ && refused_.empty()) {
      missed =
          "The program never opened a session: it never loaded Longwire's libcuda.so.1 (it uses no "
          "CUDA, or an RPATH leads it to another libcuda), or never called cuInit.";
    }
    if (!missed.empty()) {
      std::fprintf(stderr, "longwire doctor: exit status %d. %s\n", status, missed.c_str());
      return status == 0 ? 1 : status;
    }
    std::sort(refused_.begin(), refused_.end());
    refused_.erase(std::unique(refused_.begin(), refused_.end()), refused_.end());
    std::fprintf(stderr, "longwire doctor: the program ended with exit status %d. %s\n", status,
                 refused_.empty() ? "It used nothing that Longwire refuses."
                                  : "It used what Longwire refuses:");
    for (const std::string& line : refused_) std::fprintf(stderr, "  %s\n", line.c_str());
    return status;
  }

 private:
  void HearStarter(const std::string& sentence) {
    std::string_view notice = kNotice;
    if (sentence.starts_with(notice)) {
      notice_ = sentence.substr(notice.size());
    } else {
      not_started_ = sentence;
    }
  }

  Arguments refused_;
  bool opened_ = false;
  std::string last_;
  std::string not_started_;
  std::string notice_;
};

void Listen(int descriptor, Listener* listener) {
  std::string rest;
  char bytes[4096];
  ssize_t got = 0;
  while ((got = read(descriptor, bytes, sizeof bytes)) > 0 || (got < 0 && errno == EINTR)) {
    if (got > 0) rest.append(bytes, static_cast<size_t>(got));
    size_t end = 0;
    while ((end = rest.find('\n')) != std::string::npos) {
      listener->Line(rest.substr(0, end));
      rest.erase(0, end + 1);
    }
  }
  if (!rest.empty()) listener->Line(rest);
}

}  // namespace

int ExplainNames(const Arguments& names, bool json) {
  if (names.empty()) {
    std::fputs("longwire doctor: --explain what? FUNCTION..., or [OPTIONS] -- PROGRAM\n", stderr);
    return kUsageStatus;
  }
  int unknown = 0;
  std::string list;
  for (const std::string& name : names) {
    std::optional<CallId> id = FindCall(name);
    if (!id) {
      ++unknown;
      std::fprintf(
          stderr,
          "longwire doctor: '%s' is no function of the CUDA 13.0 driver; write -- before a "
          "program\n",
          name.c_str());
      continue;
    }
    std::string reason = CallRefusal(*id);
    if (json) {
      JsonObject object;
      object.Add("function", name).Add("works", CallKind(*id) != CallKindValue::kUnsupported);
      object.Add("how", Becomes(*id)).Add("reason", reason);
      list += (list.empty() ? "" : ",") + object.Text();
      continue;
    }
    std::printf("%s %s%s%s\n", name.c_str(), Becomes(*id), reason.empty() ? "" : ": ",
                reason.c_str());
  }
  if (json) std::printf("{\"functions\":[%s]}\n", list.c_str());
  return unknown == 0 ? 0 : kUsageStatus;
}

int ExplainProgram(const Arguments& words) {
  int ends[2];
  pid_t child = -1;
  if (pipe(ends) == 0) child = fork();
  if (child < 0) {
    std::fprintf(stderr, "longwire doctor: %s\n", std::strerror(errno));
    return 1;
  }
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    setenv("LONGWIRE_LOG", "1", 1);
    std::exit(RunProgram("run", words, ""));  // only if it could not be started
  }
  close(ends[1]);
  Listener listener;
  Listen(ends[0], &listener);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return listener.Report(code);
}

}  // namespace longwire::cli
