// The walls between workers: where they can be had, longwire-starter starts each worker as a user
// of its own, in namespaces of its own. Where not, the warden starts it, and says so.
#include <signal.h>

#include <algorithm>
#include <cstdio>

#include "server/warden/warden.h"

namespace longwire::warden {
namespace {

constexpr std::chrono::seconds kStarterRetry{5};

struct Name {
  starter::Wall wall;
  const char* text;
  const char* why_not;
};
constexpr Name kNames[] = {
    {starter::kOwnUser, "own users", "the server does not run as root"},
    {starter::kOwnSpaces, "own processes, files and IPC", "this host allows no namespaces here"},
    {starter::kOwnNetwork, "own networks", "this host allows no namespaces here"},
    {starter::kOwnCgroup, "own control groups",
     "none was delegated; the packages' service has one"},
    {starter::kTenantFolders, "tenants' folders", "they need own files"},
};

void Join(std::string* list, const std::string& text) {
  *list += (list->empty() ? "" : ", ") + text;
}

}  // namespace

Program Warden::StarterProgram() const {
  const WallOptions& walls = options_.walls;
  Program program;
  program.path = walls.starter_program;
  program.arguments = {"--user",        std::to_string(walls.first_uid),
                       "--host-memory", std::to_string(walls.host_memory),
                       "--processes",   std::to_string(walls.processes)};
  std::string tenants = compile_cache_.tenants();
  auto add = [&program](const std::string& name, const std::string& value) {
    program.arguments.push_back(name);
    program.arguments.push_back(value);
  };
  if (!tenants.empty()) add("--tenants", tenants);
  if (!walls.cgroups.empty()) add("--cgroups", walls.cgroups);
  // A driver library outside of the system's folders.
  size_t folder = driver_.rfind('/');
  if (folder != std::string::npos && folder != 0) add("--show", driver_.substr(0, folder));
  return program;
}

// True if it has to be called again soon. Workers of a starter that is gone have ended with it.
bool Warden::KeepStarter() {
  if (!options_.walls.separate || starter_.running() || cannot_separate_) return false;
  if (Clock::now() < starter_after_) return true;
  ReadStarter();
  starter_after_ = Clock::now() + kStarterRetry;
  const std::string& socket = options_.walls.starter_socket;
  std::string problem;
  bool runs = socket.empty() ? starter_.Start(StarterProgram(), &problem)
                             : starter_.Connect(socket, &problem);
  SayWalls(runs ? "" : problem);
  if (!runs) ReadStarter();
  cannot_separate_ = !runs && socket.empty() && !was_separate_;
  was_separate_ |= runs;
  return !runs && !cannot_separate_;
}

// No worker is started without the walls that others have.
bool Warden::MayStartWorkers(std::string* sentence) const {
  if (starter_.running() || cannot_separate_ || !options_.walls.separate) return true;
  *sentence = "longwire-starter, which starts workers, is not there: " + walls_problem_;
  return false;
}

// Once for each state: it may be tried again for days.
void Warden::SayWalls(const std::string& problem) {
  bool again = !problem.empty() && problem == walls_problem_;
  walls_problem_ = problem;
  if (again) return;
  std::string standing = WallsText(true), missing = WallsText(false);
  std::fprintf(stderr, "longwire-warden: walls between workers: %s%s%s\n", standing.c_str(),
               missing.empty() ? "" : "; not here: ", missing.c_str());
  if (!problem.empty()) {
    std::fprintf(stderr,
                 "longwire-warden: WORKERS ARE NOT SEPARATED FROM EACH OTHER: %s. Start the "
                 "server as root or as the packages' services do\n",
                 problem.c_str());
  }
}

std::string Warden::WallsText(bool standing) const {
  const WallOptions& walls = options_.walls;
  std::string text;
  const std::string calls = "system calls " + walls.system_calls;
  const bool filtered = walls.system_calls == "enforce";
  if (!walls.separate) {
    text = standing ? "shared_uid: all workers are one user" : "";
    if (filtered == standing) Join(&text, calls);
    return text;
  }
  for (const Name& name : kNames) {
    if (name.wall == starter::kTenantFolders && options_.compile_cache.empty()) continue;
    bool stands = starter_.running() && starter_.has(name.wall);
    if (stands != standing) continue;
    const bool says_why = !standing && starter_.running();  // else one reason for all
    Join(&text, name.text + (says_why ? " (" + std::string(name.why_not) + ")" : ""));
  }
  if (!standing && !walls_problem_.empty()) text += " (" + walls_problem_ + ")";
  if (filtered == standing) Join(&text, calls);
  return standing ? "separate: " + (text.empty() ? "none" : text) : text;
}

void Warden::Do(int connection, const GetWalls& request) {
  Reply(connection, message::Pack(Walls{request.request, WallsText(true), WallsText(false)}));
}

std::vector<std::string> Warden::CacheVariables(const Worker& worker) const {
  if (!worker.walled) return compile_cache_.VariablesOf(worker.number);
  bool cached = starter_.has(starter::kTenantFolders) && !options_.compile_cache.empty();
  if (!cached) return {"CUDA_CACHE_DISABLE=1"};
  std::string variable = "CUDA_CACHE_PATH=";
  return {variable.append(starter::kCompileCache)};
}

void Warden::AssignFolders(const Worker& worker, const std::string& tenant) {
  if (!worker.walled) return compile_cache_.Assign(worker.number, tenant);
  starter_.Assign(worker.process.pid, options_.compile_cache.empty() ? "" : tenant,
                  ledger_->latency_critical(TenantNumber(tenant)));
}

void Warden::SetWeights(uint32_t tenant) {
  for (const auto& [number, worker] : workers_) {
    if (!worker.walled || worker.session == 0 || worker.tenant != tenant) continue;
    starter_.Assign(worker.process.pid, "", ledger_->latency_critical(tenant));
  }
}

void Warden::ReadStarter() {
  for (const StarterClient::End& end : starter_.TakeEnds()) {
    auto found = std::ranges::find_if(workers_, [&end](const auto& entry) {
      return entry.second.walled && entry.second.process.pid == end.worker;
    });
    if (found != workers_.end()) OnWorkerEnded(found->first, end.exit_code, end.signal);
  }
  if (starter_.running()) return;
  std::vector<uint64_t> ended;
  for (auto& [number, worker] : workers_) {
    if (worker.walled) ended.push_back(number);
  }
  if (!ended.empty()) {
    std::fprintf(stderr, "longwire-warden: longwire-starter is gone, and its workers with it\n");
  }
  for (uint64_t number : ended) OnWorkerEnded(number, -1, SIGKILL);
}

void Warden::Kill(const Worker& worker) {
  worker.walled ? starter_.Kill(worker.process.pid) : warden::Kill(worker.process);
}

}  // namespace longwire::warden
