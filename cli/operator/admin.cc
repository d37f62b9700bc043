// longwire admin: for operators of a server.
#include <cstdio>
#include <optional>

#include "cli/operator/operator.h"
#include "cli/operator/sessions.h"
#include "cli/text.h"
#include "link/transport/grpc_setup.h"
#include "wire/number.h"

namespace longwire::cli {
namespace {

constexpr const char* kHelp =
    R"(longwire admin: for those who run a server.

  longwire admin reload              read the configuration file again. All of it comes into force,
                                     or nothing when something is wrong with it. Sessions go on,
                                     but for those whose identity or tenant it does not have
  longwire admin sessions [--json]   who uses the server now
  longwire admin kill SESSION        end one session, by its number
  longwire admin evict NAME          end all sessions of a tenant or an identity. To keep it out,
                                     take it out of the configuration and reload, or revoke its
                                     certificate: longwire cert revoke
  longwire admin drain [--off]       open no new sessions; those that run end by themselves
  longwire admin cordon DEVICE [--off]
                                     place no new sessions on a device; those that it has go on

Programs whose session is ended write the reason to their standard error. drain and cordon last
until longwired ends.
)";
constexpr const char* kStatusHelp =
    R"(
Over the network it needs the certificate of a tenant with admin: true. The exit status is 0 if it
is done, 1 if not, 2 if this command was called wrongly.
)";

struct Wish {
  std::string action;
  std::string object;  // of kill, evict and cordon
  bool off = false;
  bool json = false;
};

struct Action {
  const char* name;
  const char* object;  // what it needs; nullptr: nothing
  bool has_off;
};
constexpr Action kActions[] = {{"reload", nullptr, false},
                               {"sessions", nullptr, false},
                               {"kill", "a session's number", false},
                               {"evict", "the name of a tenant or an identity", false},
                               {"drain", nullptr, true},
                               {"cordon", "a device's number", true}};

// `sentence` ends with its full stop or question mark.
int Misuse(const std::string& sentence) {
  std::fprintf(stderr, "longwire admin: %s See longwire admin --help\n", sentence.c_str());
  return kUsageStatus;
}

void PrintLines(const std::string& lines, FILE* to) {
  size_t start = 0;
  for (size_t end; (end = lines.find('\n', start)) != std::string::npos; start = end + 1) {
    std::fprintf(to, "%s\n", Printable(lines.substr(start, end - start)).c_str());
  }
}

// 0, or the exit status with a sentence on standard error.
int Parse(const Arguments& arguments, Wish* wish) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    Taken taken = TakeConnectionOption("admin", arguments, &i);
    if (taken == Taken::kBad) return kUsageStatus;
    if (taken == Taken::kYes) continue;
    const std::string& word = arguments[i];
    if (word == "--off" || word == "--json") {
      (word == "--off" ? wish->off : wish->json) = true;
    } else if (word.starts_with("-")) {
      return Misuse("unknown option '" + word + "'.");
    } else if (wish->action.empty()) {
      wish->action = word;
    } else if (wish->object.empty()) {
      wish->object = word;
    } else {
      return Misuse("unknown option '" + word + "'.");
    }
  }
  if (wish->action.empty()) return Misuse("what shall be done?");
  for (const Action& action : kActions) {
    if (wish->action != action.name) continue;
    if (wish->off && !action.has_off) return Misuse(wish->action + " has no --off.");
    if (wish->json && wish->action != "sessions") return Misuse(wish->action + " has no --json.");
    if (action.object == nullptr && !wish->object.empty()) {
      return Misuse("unknown option '" + wish->object + "'.");
    }
    if (action.object == nullptr || !wish->object.empty()) return 0;
    return Misuse(wish->action + " needs " + action.object + ".");
  }
  return Misuse("unknown option '" + wish->action + "'.");
}

// nullopt when the object is no number that it has to be.
std::optional<transport::AdminRequest> RequestOf(const Wish& wish) {
  transport::AdminRequest request;
  auto number = wire::ParseNumber(wish.object, 0, INT64_MAX);
  bool needs_number = wish.action == "kill" || wish.action == "cordon";
  if (needs_number && (!number || (wish.action == "cordon" && *number > INT32_MAX))) {
    return std::nullopt;
  }
  if (wish.action == "kill") {
    request.mutable_kill()->set_session(static_cast<uint64_t>(*number));
  } else if (wish.action == "evict") {
    request.mutable_evict()->set_name(wish.object);
  } else if (wish.action == "drain") {
    request.mutable_drain()->set_off(wish.off);
  } else if (wish.action == "cordon") {
    request.mutable_cordon()->set_device(static_cast<int32_t>(*number));
    request.mutable_cordon()->set_off(wish.off);
  } else {
    request.mutable_reload();
  }
  return request;
}

int ListSessions(Operator& server, bool json) {
  transport::InspectReply reply;
  std::string sentence;
  if (!server.Inspect({}, &reply, &sentence)) {
    std::fprintf(stderr, "longwire admin: %s\n", Printable(sentence).c_str());
    return 1;
  }
  std::fputs(json ? (SessionsJson(reply) + "\n").c_str() : SessionsText(reply).c_str(), stdout);
  return 0;
}

int Administer(Operator& server, const transport::AdminRequest& request) {
  transport::AdminReply reply;
  std::string lines, sentence;
  bool answered = server.Administer(request, &reply, &sentence);
  if (!answered) lines = sentence + "\n";
  for (const std::string& said : reply.sentences()) lines += said + "\n";
  if (answered && reply.done()) {
    PrintLines(lines.empty() ? "nothing has changed\n" : lines, stdout);
    return 0;
  }
  std::fputs(request.has_reload() ? "longwire admin: not reloaded\n" : "longwire admin: not done\n",
             stderr);
  PrintLines(lines, stderr);
  return 1;
}

}  // namespace

int Admin(const Arguments& arguments) {
  for (const std::string& argument : arguments) {
    if (!IsHelp(argument)) continue;
    std::fputs(kHelp, stdout);
    std::fputs(kOperatorHelp, stdout);
    PrintHelp(kStatusHelp, Reach::kNetworkAndLocal);
    return 0;
  }
  Wish wish;
  if (int status = Parse(arguments, &wish); status != 0) return status;
  auto request = RequestOf(wish);
  if (!request) return Misuse("'" + wish.object + "' is no number of a session or device.");
  ServerOptions options;
  FindServer(&options);
  transport::PrepareProcess();
  Operator server(options, Operator::Prefers::kLocal);
  if (wish.action == "sessions") return ListSessions(server, wish.json);
  return Administer(server, *request);
}

}  // namespace longwire::cli
