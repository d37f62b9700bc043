#include "cli/operator/programs.h"

#include <cstdio>
#include <map>
#include <sstream>
#include <vector>

#include "base/json.h"
#include "cli/operator/operator.h"
#include "cli/text.h"
#include "wire/client_settings.h"

namespace longwire::cli {
namespace {

struct SessionThere {
  std::string server;
  transport::Session session;
};
using Programs = std::map<std::string, std::vector<SessionThere>>;  // by the program's id

std::vector<std::string> ServersOf(const std::string& list) {
  std::vector<std::string> servers;
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    word = wire::Trim(word);
    if (!word.empty()) servers.push_back(word);
  }
  return servers;
}

// Also those of which this list has one server only: another one may be elsewhere.
bool Ask(const ServerOptions& options, const std::string& name, Programs* programs) {
  ServerOptions one = options;
  one.server = name;
  Operator server(one, Operator::Prefers::kNetwork);
  transport::InspectReply reply;
  std::string sentence;
  if (!server.Inspect({}, &reply, &sentence)) {
    std::fprintf(stderr, "longwire status: %s\n", sentence.c_str());
    return false;
  }
  for (const transport::Session& session : reply.sessions()) {
    if (session.program_id().empty()) continue;
    (*programs)[session.program_id()].push_back({server.name(), session});
  }
  return true;
}

std::string DevicesOf(const transport::Session& session) {
  std::string list;
  for (const transport::SessionMemory& memory : session.memory()) {
    list += (list.empty() ? "" : ", ") + std::to_string(memory.device());
  }
  return list;
}

uint64_t MemoryOf(const transport::Session& session) {
  uint64_t bytes = session.leased();
  for (const transport::SessionMemory& memory : session.memory()) bytes += memory.charged();
  return bytes;
}

void Print(const Programs& programs) {
  for (const auto& [id, sessions] : programs) {
    const transport::Session& first = sessions.front().session;
    std::printf("program %s  %s\n  client %s pid %u, identity %s\n", Printable(id).c_str(),
                Printable(first.program()).c_str(), Printable(first.client_host()).c_str(),
                first.client_pid(), Printable(first.identity()).c_str());
    for (const SessionThere& there : sessions) {
      std::printf("  %s: session %llu, devices %s, %s of memory, for %s\n", there.server.c_str(),
                  static_cast<unsigned long long>(there.session.id()),
                  DevicesOf(there.session).c_str(), BytesText(MemoryOf(there.session)).c_str(),
                  SecondsText(there.session.seconds()).c_str());
    }
  }
  if (programs.empty()) std::puts("no program has sessions at several servers");
}

std::string Json(const SessionThere& there) {
  return "{\"server\":" + base::JsonString(there.server) +
         ",\"session\":" + std::to_string(there.session.id()) + ",\"devices\":[" +
         DevicesOf(there.session) + "],\"memory\":" + std::to_string(MemoryOf(there.session)) + "}";
}

void PrintJson(const Programs& programs) {
  std::string all;
  for (const auto& [id, sessions] : programs) {
    std::string list;
    for (const SessionThere& there : sessions) list += (list.empty() ? "" : ",") + Json(there);
    all += (all.empty() ? "" : ",") + std::string("{\"program_id\":") + base::JsonString(id) +
           ",\"program\":" + base::JsonString(sessions.front().session.program()) +
           ",\"sessions\":[" + list + "]}";
  }
  std::printf("{\"programs\":[%s]}\n", all.c_str());
}

}  // namespace

int ProgramsStatus(const ServerOptions& options, bool json) {
  Programs programs;
  bool all = true;
  std::vector<std::string> servers = ServersOf(options.server);
  if (servers.empty()) servers.emplace_back();
  for (const std::string& name : servers) all = Ask(options, name, &programs) && all;
  json ? PrintJson(programs) : Print(programs);
  return all ? 0 : 1;
}

}  // namespace longwire::cli
