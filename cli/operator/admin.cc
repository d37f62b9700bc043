// longwire admin: for operators of a server.
#include <cstdio>
#include <memory>
#include <optional>

#include "cli/operator/operator.h"
#include "cli/operator/sessions.h"
#include "cli/status_json.h"
#include "cli/text.h"
#include "link/certificates/address.h"
#include "link/transport/grpc_setup.h"
#include "wire/duration.h"
#include "wire/number.h"

namespace longwire::cli {
namespace {

constexpr const char* kAbout = "for those who run a server";
constexpr const char* kAdminFooter =
    "Programs whose session is ended write the reason to their standard error. What drain and "
    "cordon "
    "say of this server lasts until it is taken back or the host boots anew; what they say of a "
    "host "
    "of the pool lasts until it is taken back.\n\n";
constexpr const char* kStatusHelp =
    "Over the network it needs the certificate of a tenant with admin: true. The exit status is 0 "
    "if it is done, 1 if not, 2 if this command was called wrongly.";

struct Wish {
  std::string object;   // what the action needs
  std::string file;     // of checkpoint
  int32_t device = -1;  // of restore: where to
  std::string place;    // of migrate: where to
  std::string to;       // of drain
  bool off = false;
  std::string deadline;  // of drain
  bool json = false;
};

struct Action {
  const char* name;
  const char* about;
  const char* object;  // what it needs; nullptr: nothing
  const char* object_help;
  bool has_off;
  bool may_lack_object = false;
};
constexpr Action kActions[] = {
    {"reload",
     "read the configuration file again: all of it comes into force, or nothing when something is "
     "wrong with it. Sessions go on, but for those whose identity or tenant it does not have",
     nullptr, nullptr, false},
    {"sessions", "who uses the server now", nullptr, nullptr, false},
    {"kill", "end one session", "SESSION", "the session's number", false},
    {"migrate",
     "move a session to another device of this server, or to another server; its program notices a "
     "pause. Where it cannot move it goes on where it is, and the reason is printed "
     "(docs/moving.md)",
     "SESSION", "the session's number", false},
    {"checkpoint",
     "suspend a session into a file below the server's checkpoint_dir: its worker ends, its device "
     "memory is free, and its program waits (checkpoint_grace) until the session is restored",
     "SESSION", "the session's number", false},
    {"restore",
     "let a suspended session go on, on DEVICE or where the server places it. Its file is void "
     "then",
     "FILE", "the name of the file, as it was given to checkpoint", false},
    {"evict",
     "end all sessions of a tenant or an identity. To keep it out, take it out of the "
     "configuration and reload, or revoke its certificate: longwire cert revoke",
     "NAME", "the name of a tenant or an identity", false},
    {"drain",
     "open no new sessions: at this server, or at a host of its pool; those that run end by "
     "themselves, or at the deadline, or move to another server (--to). Or on a device of this "
     "server, whose sessions move to other devices as far as they can move (docs/moving.md)",
     "DEVICE|HOST", "the device's number, or the host's name in the pool; without it: this server",
     true, true},
    {"cordon",
     "place no new sessions on a device, or on a host of the pool; those that it has go on",
     "DEVICE|HOST", "the device's number, or the host's name in the pool", true},
    {"uncordon", "take back what drain or cordon said of a host of the pool, or cordon of a device",
     "DEVICE|HOST", "the device's number, or the host's name in the pool", false},
    {"forget",
     "give up a host of the pool that is gone for good: what was promised there is free. Only say "
     "it "
     "of a host that no longer runs anything",
     "HOST", "the host's name in the pool", false}};

void PrintLines(const std::string& lines, FILE* to) {
  size_t start = 0;
  for (size_t end; (end = lines.find('\n', start)) != std::string::npos; start = end + 1) {
    std::fprintf(to, "%s\n", Printable(lines.substr(start, end - start)).c_str());
  }
}

// Of a host of the pool.
transport::AdminRequest WithdrawalOf(const std::string& action, const Wish& wish) {
  transport::AdminRequest request;
  transport::WithdrawRequest& to = *request.mutable_withdraw();
  to.set_host(wish.object);
  to.set_kind(action == "drain" ? transport::WithdrawRequest::DRAIN
                                : transport::WithdrawRequest::CORDON);
  if (wish.off || action == "uncordon") to.set_kind(transport::WithdrawRequest::BACK);
  auto seconds = wire::ParseDuration(wish.deadline, wire::kLongestWaitSeconds);
  if (seconds) to.set_seconds(static_cast<uint64_t>(*seconds));
  return request;
}

// A host of the pool is what is no device's number.
bool IsOfHost(const std::string& action, const std::string& object) {
  return (action == "drain" || action == "cordon" || action == "uncordon") &&
         object.find_first_not_of("0123456789") != std::string::npos;
}

// A device of this server, or another server, and a device of that: 1, gpu2.example.org:7411,
// gpu2.example.org:7411/1. Else refuses.
void SetPlace(const std::string& place, transport::MigrateRequest* request) {
  if (auto device = wire::ParseNumber(place, 0, INT32_MAX)) {
    request->set_device(static_cast<int32_t>(*device));
    return;
  }
  const size_t slash = place.find('/');
  const std::string server = place.substr(0, slash);
  std::string problem;
  auto address = transport::ParseAddress(server, &problem);
  std::optional<int64_t> device;
  if (slash != std::string::npos) {
    device = wire::ParseNumber(place.substr(slash + 1), 0, INT32_MAX);
    if (!device) problem = "behind the slash stands the number of a device there";
  }
  if (!address || !problem.empty()) {
    RefuseValue(
        "PLACE expects the number of a device, or another server as HOST[:PORT] or "
        "HOST[:PORT]/DEVICE, found '" +
        place + "': " + problem);
  }
  request->set_to(address->Text());
  if (device) request->set_device_there(static_cast<int32_t>(*device));
}

// nullopt when the object is no number that it has to be.
std::optional<transport::AdminRequest> RequestOf(const std::string& action, const Wish& wish) {
  if (IsOfHost(action, wish.object)) return WithdrawalOf(action, wish);
  transport::AdminRequest request;
  auto number = wire::ParseNumber(wish.object, 0, INT64_MAX);
  const bool of_device =
      action == "cordon" || action == "uncordon" || (action == "drain" && !wish.object.empty());
  const bool needs_number =
      action == "kill" || action == "migrate" || action == "checkpoint" || of_device;
  if (needs_number && (!number || (of_device && *number > INT32_MAX))) return std::nullopt;
  if (action == "kill") {
    request.mutable_kill()->set_session(static_cast<uint64_t>(*number));
  } else if (action == "migrate") {
    request.mutable_migrate()->set_session(static_cast<uint64_t>(*number));
    SetPlace(wish.place, request.mutable_migrate());
  } else if (action == "checkpoint") {
    request.mutable_checkpoint()->set_session(static_cast<uint64_t>(*number));
    request.mutable_checkpoint()->set_file(wish.file);
  } else if (action == "restore") {
    request.mutable_restore()->set_file(wish.object);
    if (wish.device >= 0) request.mutable_restore()->set_device(wish.device);
  } else if (action == "evict") {
    request.mutable_evict()->set_name(wish.object);
  } else if (action == "drain") {
    request.mutable_drain()->set_off(wish.off);
    if (!wish.to.empty()) request.mutable_drain()->set_to(wish.to);
    if (of_device) request.mutable_drain()->set_device(static_cast<int32_t>(*number));
  } else if (action == "forget") {
    request.mutable_forget()->set_host(wish.object);
  } else if (of_device) {
    request.mutable_cordon()->set_device(static_cast<int32_t>(*number));
    request.mutable_cordon()->set_off(wish.off || action == "uncordon");
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
  if (reply.other_tenants_left_out()) {
    std::fputs(
        "longwire admin: these are the sessions of your tenant; others are not shown to you\n",
        stderr);
  }
  return 0;
}

// As it printed, or for programs: {"done": …, "sentences": […]}, also where nothing is done.
void PrintReply(const transport::AdminRequest& request, bool done, const std::string& lines) {
  if (done) return PrintLines(lines.empty() ? "nothing has changed\n" : lines, stdout);
  std::fputs(request.has_reload() ? "longwire admin: not reloaded\n" : "longwire admin: not done\n",
             stderr);
  PrintLines(lines, stderr);
}

int Administer(Operator& server, const transport::AdminRequest& request, bool json) {
  transport::AdminReply reply;
  std::string lines, sentence;
  if (!server.Administer(request, &reply, &sentence)) {
    reply.set_done(false);
    reply.add_sentences(sentence);
  }
  for (const std::string& said : reply.sentences()) lines += said + "\n";
  if (json) {
    std::puts(MessageJson(reply).c_str());
  } else {
    PrintReply(request, reply.done(), lines);
  }
  return reply.done() ? 0 : 1;
}

// A deadline is of a host of the pool, and of what is drained.
void CheckDeadline(const Wish& wish) {
  if (wish.deadline.empty()) return;
  if (!wire::ParseDuration(wish.deadline, wire::kLongestWaitSeconds)) {
    RefuseValue("--deadline expects a duration such as 90s, 30m, 2h or 1d, at most 30d, found '" +
                wish.deadline + "'");
  }
  if (!IsOfHost("drain", wish.object) || wish.off) {
    RefuseValue("--deadline goes with the name of a host of the pool, and not with --off");
  }
}

// Of this server, as a whole.
void CheckTo(const Wish& wish) {
  if (wish.to.empty()) return;
  std::string problem;
  if (!transport::ParseAddress(wish.to, &problem)) {
    RefuseValue("--to expects another server as HOST[:PORT], found '" + wish.to + "': " + problem);
  }
  if (!wish.object.empty() || wish.off) {
    RefuseValue("--to goes neither with a device or a host, nor with --off");
  }
}

int Act(const CLI::App& command, const std::string& action, const Wish& wish) {
  CheckDeadline(wish);
  CheckTo(wish);
  auto request = RequestOf(action, wish);
  if (!request) {
    std::fprintf(stderr, "%s: '%s' is no number of a %s; see %s --help\n", PathOf(command).c_str(),
                 Printable(wish.object).c_str(),
                 action.ends_with("cordon") || action == "drain" ? "device" : "session",
                 PathOf(command).c_str());
    return kUsageStatus;
  }
  ServerOptions options;
  FindServer(&options);
  transport::PrepareProcess();
  Operator server(options, Operator::Prefers::kLocal);
  if (action == "sessions") return ListSessions(server, wish.json);
  return Administer(server, *request, wish.json);
}

}  // namespace

void AddAdmin(CommandLine& line) {
  CLI::App& admin = line.Add(nullptr, "admin", kAbout);
  admin.footer(std::string(kAdminFooter) + kOperatorHelp + kStatusHelp);
  for (const Action& action : kActions) {
    auto wish = std::make_shared<Wish>();
    auto self = std::make_shared<CLI::App*>();
    CLI::App& command = line.Add(&admin, action.name, action.about,
                                 [=] { return Act(**self, action.name, *wish); });
    *self = &command;
    if (action.object != nullptr) {
      command.add_option(action.object, wish->object, action.object_help)
          ->required(!action.may_lack_object);
    }
    if (std::string_view(action.name) == "migrate") {
      command
          .add_option("PLACE", wish->place,
                      "the number of the device where it shall go, or another server: HOST[:PORT], "
                      "or HOST[:PORT]/DEVICE")
          ->required();
    }
    if (std::string_view(action.name) == "drain") {
      command
          .add_option("--deadline", wish->deadline,
                      "of a host of the pool: what still runs there after it is ended: 90s, "
                      "30m, 2h, 1d. Without it, sessions are waited for")
          ->type_name("DURATION");
      command
          .add_option("--to", wish->to,
                      "of this server: move the sessions that run to another one, those that can "
                      "move")
          ->type_name("HOST[:PORT]")
          ->check([](const std::string& to) {
            return to.empty() ? "names no server; without --to sessions are waited for" : "";
          });
    }
    if (std::string_view(action.name) == "checkpoint") {
      command.add_option("FILE", wish->file, "its name, without a folder")->required();
    }
    if (std::string_view(action.name) == "restore") {
      command.add_option("DEVICE", wish->device, "the number of the device where it shall go on")
          ->check(CLI::Range(0, INT32_MAX));
    }
    if (action.has_off) command.add_flag("--off", wish->off, "take it back");
    command.add_flag("--json", wish->json, "what comes of it, for programs");
    AddConnection(command, Reach::kNetworkAndLocal);
    command.footer(std::string(kOperatorHelp) + kStatusHelp);
  }
}

}  // namespace longwire::cli
