#include <algorithm>
#include <cctype>

#include "policy/access.h"
#include "probe/helpers.h"
#include "probe/include/longwire/probe.h"
#include "probe/probe.h"
#include "probe/translate.h"
#include "wire/guards.h"

namespace longwire::probe {

namespace {

constexpr size_t kMaxName = 64;

// They become names in PTX.
bool CheckNames(const std::vector<policy::MapShape>& maps, std::string* sentence) {
  for (size_t i = 0; i < maps.size(); ++i) {
    const std::string& name = maps[i].name;
    const bool plain = name.size() <= kMaxName && std::ranges::all_of(name, [](unsigned char c) {
                         return c < 128 && (std::isalnum(c) != 0 || c == '_');
                       });
    // A twin of the fuzz target leaves this check out.
    if (!wire::kPlantedBug && !plain) {
      *sentence = "a map's name is no name in C, or longer than 64 letters: give it another one";
      return false;
    }
    for (size_t j = 0; j < i; ++j) {
      if (maps[j].name != name) continue;
      *sentence = "it has two maps '" + name + "': give one another name";
      return false;
    }
  }
  return true;
}

bool FindPoint(const policy::HookCode& code, Point* point, std::string* sentence) {
  const auto found = std::ranges::find(kPoints, code.hook);
  if (found != std::end(kPoints)) {
    *point = static_cast<Point>(found - std::begin(kPoints));
    return true;
  }
  *sentence = code.Place(0) + ": there is no point '" + code.hook + "'; there are";
  for (const std::string_view name : kPoints) *sentence += " " + std::string(name);
  return false;
}

}  // namespace

std::optional<ProbeSet> LoadProbes(std::span<const std::byte> file, policy::Engine* engine,
                                   std::string* sentence) {
  auto object = policy::ReadObject(file, sentence, kProbes);
  if (!object || !CheckNames(object->maps, sentence)) return std::nullopt;
  ProbeSet set;
  for (const policy::HookCode& code : object->hooks) {
    Probe probe;
    std::map<uint32_t, policy::Place> places;
    if (!FindPoint(code, &probe.point, sentence) ||
        !policy::CheckAccess(code, sizeof(lw_point), sentence, &places) ||
        !Translate(code, places, object->maps, &probe, sentence) ||
        (engine != nullptr &&
         engine->Compile(code, sizeof(lw_point), Helpers(), sentence) == nullptr)) {
      return std::nullopt;
    }
    for (const Probe& other : set.probes) {
      if (other.point != probe.point) continue;
      *sentence = code.Place(0) + ": there is another probe at this point; make it one function";
      return std::nullopt;
    }
    set.probes.push_back(std::move(probe));
  }
  set.maps = std::move(object->maps);
  return set;
}

}  // namespace longwire::probe
