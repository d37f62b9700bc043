// longwire admin: for operators of a server.
#include <cstdio>
#include <memory>
#include <optional>

#include "cli/operator/operator.h"
#include "cli/operator/sessions.h"
#include "cli/status_json.h"
#include "cli/text.h"
#include "link/transport/grpc_setup.h"
#include "wire/number.h"

namespace longwire::cli {
namespace {

constexpr const char* kAbout = "for those who run a server";
constexpr const char* kFooter =
    "Programs whose session is ended write the reason to their standard error. drain and cordon "
    "last until they are taken back or the host boots anew.\n\n";
constexpr const char* kStatusHelp =
    "Over the network it needs the certificate of a tenant with admin: true. The exit status is 0 "
    "if it is done, 1 if not, 2 if this command was called wrongly.";

struct Wish {
  std::string object;   // of kill, migrate, checkpoint, restore, evict, cordon and forget
  std::string file;     // of checkpoint
  int32_t device = -1;  // of migrate and restore: where to; of drain: which
  bool off = false;
  bool json = false;
};

struct Action {
  const char* name;
  const char* about;
  const char* object;  // what it needs; nullptr: nothing
  const char* object_help;
  bool has_off;
};
constexpr Action kActions[] = {
    {"reload",
     "read the configuration file again: all of it comes into force, or nothing when something is "
     "wrong with it. Sessions go on, but for those whose identity or tenant it does not have",
     nullptr, nullptr, false},
    {"sessions", "who uses the server now", nullptr, nullptr, false},
    {"kill", "end one session", "SESSION", "the session's number", false},
    {"migrate",
     "move a session to another device of this server; its program notices a pause. Where it "
     "cannot move it goes on where it is, and the reason is printed",
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
     "open no new sessions; those that run end by themselves. With a DEVICE: place no new ones "
     "there, and move those that it has to other devices, as far as they can move (docs/moving.md)",
     nullptr, nullptr, true},
    {"cordon", "place no new sessions on a device; those that it has go on", "DEVICE",
     "the device's number", true},
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

// nullopt when the object is no number that it has to be.
std::optional<transport::AdminRequest> RequestOf(const std::string& action, const Wish& wish) {
  transport::AdminRequest request;
  auto number = wire::ParseNumber(wish.object, 0, INT64_MAX);
  bool needs_number =
      action == "kill" || action == "migrate" || action == "checkpoint" || action == "cordon";
  if (needs_number && (!number || (action == "cordon" && *number > INT32_MAX))) {
    return std::nullopt;
  }
  if (action == "kill") {
    request.mutable_kill()->set_session(static_cast<uint64_t>(*number));
  } else if (action == "migrate") {
    request.mutable_migrate()->set_session(static_cast<uint64_t>(*number));
    request.mutable_migrate()->set_device(wish.device);
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
    if (wish.device >= 0) request.mutable_drain()->set_device(wish.device);
  } else if (action == "forget") {
    request.mutable_forget()->set_host(wish.object);
  } else if (action == "cordon") {
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

int Act(const CLI::App& command, const std::string& action, const Wish& wish) {
  auto request = RequestOf(action, wish);
  if (!request) {
    std::fprintf(stderr, "%s: '%s' is no number of a %s; see %s --help\n", PathOf(command).c_str(),
                 Printable(wish.object).c_str(), action == "cordon" ? "device" : "session",
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
  admin.footer(std::string(kFooter) + kOperatorHelp + kStatusHelp);
  for (const Action& action : kActions) {
    auto wish = std::make_shared<Wish>();
    auto self = std::make_shared<CLI::App*>();
    CLI::App& command = line.Add(&admin, action.name, action.about,
                                 [=] { return Act(**self, action.name, *wish); });
    *self = &command;
    if (action.object != nullptr) {
      command.add_option(action.object, wish->object, action.object_help)->required();
    }
    if (std::string_view(action.name) == "migrate") {
      command.add_option("DEVICE", wish->device, "the number of the device where it shall go")
          ->required()
          ->check(CLI::NonNegativeNumber);
    }
    if (std::string_view(action.name) == "checkpoint") {
      command.add_option("FILE", wish->file, "its name, without a folder")->required();
    }
    if (std::string_view(action.name) == "restore") {
      command.add_option("DEVICE", wish->device, "the number of the device where it shall go on")
          ->check(CLI::NonNegativeNumber);
    }
    if (std::string_view(action.name) == "drain") {
      command
          .add_option("DEVICE", wish->device, "the device's number; without it, all of the server")
          ->check(CLI::NonNegativeNumber);
    }
    if (action.has_off) command.add_flag("--off", wish->off, "take it back");
    command.add_flag("--json", wish->json, "what comes of it, for programs");
    AddConnection(command, Reach::kNetworkAndLocal);
    command.footer(std::string(kOperatorHelp) + kStatusHelp);
  }
}

}  // namespace longwire::cli
