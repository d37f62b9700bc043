#include "server/daemon/policies/policies.h"

#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "link/transport/log.h"
#include "policy/key.h"
#include "scheduler/advice.h"

namespace longwire::daemon {
namespace {

using policy::Asker;
using policy::Program;
using transport::Log;
using transport::LogLevel;

constexpr size_t kMaxPolicies = 16;

std::optional<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(policy::kMaxObjectBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad() || (!file.eof() && file.fail()) || (file.gcount() == 0)) return std::nullopt;
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

constexpr std::string_view NameOf(Asker asker) {
  switch (asker) {
    case Asker::kScheduler:
      return "the scheduler";
    case Asker::kPlacement:
      return "placement";
    case Asker::kKeepers:
      return "memory";
    case Asker::kLaunches:
      return "launches";
  }
  return "";
}

std::string NoPolicy(const std::string& name) {
  return "there is no policy '" + name + "'; longwire policy list names those that are loaded";
}

void LogEnd(const std::string& name, const std::string& why) {
  Log(LogLevel::kError,
      "the policy '" + name + "' was unloaded: " + why + ". What is built in decides again");
}

void DescribeMap(const policy::MapShape& shape, const policy::Map& map, bool values,
                 const std::map<uint64_t, std::string>& names, transport::PolicyMap* told) {
  told->set_name(shape.name);
  told->set_type(shape.type == LW_ARRAY ? "array" : "hash");
  told->set_entries(shape.entries);
  if (!values) return;
  for (const auto& [key, value] : map.Entries()) {
    transport::PolicyValue* entry = told->add_values();
    entry->set_key(key);
    entry->set_value(value);
    const auto tenant = names.find(key);
    if (tenant != names.end()) entry->set_tenant(tenant->second);
  }
}

}  // namespace

bool Policies::Read(const std::string& name, std::span<const std::byte> object, Loaded* loaded,
                    std::string* sentence) {
  policy::Engine* engine = policy::LoadEngine(sentence);
  if (engine == nullptr) return false;
  loaded->program = Program::Load(name, object, *engine, sentence);
  if (loaded->program == nullptr) return false;
  loaded->program->set_on_end([name](const std::string& why) { LogEnd(name, why); });
  loaded->object.assign(reinterpret_cast<const char*>(object.data()), object.size());
  return true;
}

bool Policies::AreApart(const Table& table, std::string* sentence) {
  if (table.size() > kMaxPolicies) {
    *sentence = "there can be " + std::to_string(kMaxPolicies) + " policies; unload one first";
    return false;
  }
  for (const Asker asker : policy::kAskers) {
    std::string first;
    for (const auto& [name, loaded] : table) {
      if (loaded.program->ended() || !loaded.program->IsAskedBy(asker)) continue;
      if (first.empty()) {
        first = name;
        continue;
      }
      *sentence = "the policies '" + first + "' and '" + name + "' both have hooks of " +
                  std::string(NameOf(asker)) + "; unload one of them first";
      return false;
    }
  }
  return true;
}

Policies::Table Policies::Together(const Table& loaded, const Table& configured) {
  Table all = configured;
  for (const auto& [name, one] : loaded) {
    if (!one.configured) all.try_emplace(name, one);
  }
  return all;
}

bool Policies::Prepare(const config::Config& config, std::string* sentence) {
  base::MutexLock lock(mutex_);
  Table next;
  for (const config::PolicyFile& told : config.policies()) {
    const std::string place = "policies: " + told.file() + ": ";
    auto object = ReadFile(told.file());
    if (!object) {
      *sentence = place +
                  "the file cannot be read, or is empty; the user that longwired runs as "
                  "has to be able to";
      return false;
    }
    const auto before = loaded_.find(told.name());
    if (before != loaded_.end() && before->second.object == *object &&
        !before->second.program->ended()) {
      next[told.name()] = before->second;
      next[told.name()].configured = true;
      continue;
    }
    Loaded loaded;
    loaded.configured = true;
    if (!Read(told.name(), std::as_bytes(std::span(*object)), &loaded, sentence)) {
      *sentence = place + *sentence;
      return false;
    }
    next[told.name()] = std::move(loaded);
  }
  if (!AreApart(Together(loaded_, next), sentence)) return false;
  prepared_ = std::move(next);
  return true;
}

void Policies::Apply() {
  base::MutexLock lock(mutex_);
  if (!prepared_) return;
  Install(Together(loaded_, *prepared_));
  prepared_.reset();
}

void Policies::Abandon() {
  base::MutexLock lock(mutex_);
  prepared_.reset();
}

void Policies::Install(Table next) {
  const Table before = std::exchange(loaded_, std::move(next));
  static const Loaded kNone;
  auto asked_by = [](const Table& table, Asker asker) -> const Loaded& {
    for (const auto& [name, loaded] : table) {
      if (!loaded.program->ended() && loaded.program->IsAskedBy(asker)) return loaded;
    }
    return kNone;
  };
  askers_.scheduling.Use(asked_by(loaded_, Asker::kScheduler).program);
  askers_.placements.Use(asked_by(loaded_, Asker::kPlacement).program);
  askers_.launches.Use(asked_by(loaded_, Asker::kLaunches).program);
  const Loaded& memory = asked_by(loaded_, Asker::kKeepers);
  askers_.memory.Use(memory.program, memory.object);
  for (const auto& [name, was] : before) {
    const auto now = loaded_.find(name);
    if (now == loaded_.end() || now->second.program != was.program) was.program->Retire();
  }
}

bool Policies::Load(const std::string& name, std::span<const std::byte> object,
                    std::string* sentence, std::shared_ptr<Program>* program) {
  Loaded loaded;
  if (!Read(name, object, &loaded, sentence)) return false;
  if (program != nullptr) *program = loaded.program;
  base::MutexLock lock(mutex_);
  Table next = loaded_;
  next[name] = std::move(loaded);
  if (!AreApart(next, sentence)) return false;
  // A reload that is under way would have to refuse it when it is too late to refuse the reload.
  if (prepared_ && !AreApart(Together(next, *prepared_), sentence)) return false;
  Install(std::move(next));
  return true;
}

bool Policies::Unload(const std::string& name, std::string* sentence,
                      std::shared_ptr<Program>* program) {
  base::MutexLock lock(mutex_);
  Table next = loaded_;
  const auto found = next.find(name);
  if (found == next.end()) {
    *sentence = NoPolicy(name);
    return false;
  }
  if (program != nullptr) *program = found->second.program;
  next.erase(found);
  Install(std::move(next));
  return true;
}

std::map<std::string, std::shared_ptr<Program>> Policies::Programs() {
  base::MutexLock lock(mutex_);
  std::map<std::string, std::shared_ptr<Program>> programs;
  for (const auto& [name, loaded] : loaded_) programs[name] = loaded.program;
  return programs;
}

bool Policies::SetValue(const std::string& name, const std::string& map, const std::string& key,
                        uint64_t value, std::string* sentence) {
  base::MutexLock lock(mutex_);
  const auto loaded = loaded_.find(name);
  if (loaded == loaded_.end()) {
    *sentence = NoPolicy(name);
    return false;
  }
  policy::Map* found = loaded->second.program->maps().Find(map);
  const auto number = policy::ParseKey(key);
  if (found == nullptr) {
    *sentence = "the policy '" + name + "' has no map '" + map + "'; longwire policy maps " + name +
                " names its maps";
  } else if (!number) {
    *sentence = "'" + key + "' is no key; give a number, tenant:NAME or kernel:NAME";
  } else if (!found->Set(*number, value)) {
    *sentence = "the map '" + map + "' has no room for the key " + key;
  } else {
    return true;
  }
  return false;
}

void Policies::Describe(bool values, const std::vector<std::string>& tenants,
                        transport::InspectReply* reply) {
  std::map<uint64_t, std::string> names;
  for (const std::string& tenant : tenants) names[scheduler::NumberOf(tenant)] = tenant;
  base::MutexLock lock(mutex_);
  for (const auto& [name, loaded] : loaded_) {
    transport::PolicyFigures* told = reply->add_policies();
    Program& program = *loaded.program;
    told->set_name(name);
    told->set_configured(loaded.configured);
    told->set_compiled(program.is_compiled());
    told->set_runs(program.runs());
    told->set_longest_nanoseconds(program.longest());
    told->set_ended(program.why_ended());
    for (const std::string& hook : program.Hooks()) told->add_hooks(hook);
    const auto& shapes = program.maps().shapes();
    for (size_t i = 0; i < shapes.size(); ++i) {
      DescribeMap(shapes[i], *program.maps().At(i), values, names, told->add_maps());
    }
  }
}

}  // namespace longwire::daemon
