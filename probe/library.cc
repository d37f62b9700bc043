// What the client's library loads: rewrites the program's modules and adds up their maps.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/lock_ranks.h"
#include "base/mutex.h"
#include "base/printable.h"
#include "probe/api.h"
#include "probe/helpers.h"
#include "probe/image.h"
#include "probe/rewrite.h"
#include "probe/spans.h"
#include "probe/totals.h"
#include "probe/triton.h"
#include "wire/descriptors.h"
#include "wire/sha256.h"

namespace longwire::probe {

namespace {

struct State {
  State(ProbeSet probes, std::string pattern, std::string file)
      : set(std::move(probes)),
        kernels(std::move(pattern)),
        output(std::move(file)),
        totals(set.maps) {
    for (const policy::MapShape& map : set.maps) symbols.push_back(SymbolOf(map));
  }
  const ProbeSet set;
  const std::string kernels, output;
  std::vector<std::string> symbols;
  base::Mutex mutex{base::ranks::kProbes};
  Totals totals LONGWIRE_GUARDED_BY(mutex);
  std::vector<std::string> refused LONGWIRE_GUARDED_BY(mutex);
  std::vector<std::string> notes LONGWIRE_GUARDED_BY(mutex);
  // Of texts that are being loaded.
  std::map<const char*, size_t> sites_of LONGWIRE_GUARDED_BY(mutex);
  size_t modules LONGWIRE_GUARDED_BY(mutex) = 0;
  size_t sites LONGWIRE_GUARDED_BY(mutex) = 0;
  size_t unread LONGWIRE_GUARDED_BY(mutex) = 0;
};

constexpr size_t kMaxSentences = 1000;  // about refused modules

State* the_state = nullptr;  // set once, before the first module

std::string NameOf(std::span<const char> image) {
  return "module " + wire::Hexadecimal(wire::Sha256Of(std::as_bytes(image))).substr(0, 12) + " (" +
         std::to_string(image.size()) + " bytes)";
}

void NoteRefused(State& state, std::span<const char> code, const std::string& why)
    LONGWIRE_REQUIRES(state.mutex) {
  if (state.refused.size() == kMaxSentences) return;
  state.refused.push_back(NameOf(code) + " has no probes: " + why);
}

void Refuse(const void* image, size_t bytes, const char* why) {
  base::MutexLock lock(the_state->mutex);
  NoteRefused(*the_state, {static_cast<const char*>(image), bytes}, why);
}

// The image's own PTX, or that from which Triton made it. `note`: what the report has to say of it.
bool FindPtx(std::span<const char> code, int capability, std::string* ptx, std::string* note,
             std::string* sentence) {
  if (PtxOf(code, capability, ptx, sentence)) return true;
  const std::string cache = TritonCache();
  std::string path, problem;
  if (PtxInTritonCache(cache, code, capability, ptx, &path, &problem)) {
    *note = NameOf(code) + " is probed in the PTX that Triton made it from: " + path;
    return true;
  }
  if (!problem.empty()) *sentence = problem;
  return false;
}

char* RewriteImage(const void* image, size_t bytes, int capability, size_t* text_bytes) {
  State& state = *the_state;
  const std::span<const char> code(static_cast<const char*>(image), bytes);
  std::string ptx, note, sentence;
  const bool has_ptx = FindPtx(code, capability, &ptx, &note, &sentence);
  const auto rewritten = has_ptx ? Rewrite(ptx, state.set, state.kernels, &sentence) : std::nullopt;
  base::MutexLock lock(state.mutex);
  if (!rewritten) {
    NoteRefused(state, code, sentence);
    return nullptr;
  }
  if (rewritten->sites == 0) return nullptr;
  char* text = strdup(rewritten->text.c_str());
  if (text == nullptr) return nullptr;
  if (!note.empty() && state.notes.size() < kMaxSentences) state.notes.push_back(note);
  ++state.modules;
  state.sites += rewritten->sites;
  state.sites_of[text] = rewritten->sites;
  for (const auto& [hash, name] : rewritten->kernels) state.totals.Name(hash, name);
  *text_bytes = rewritten->text.size() + 1;
  return text;
}

// It was loaded after all as the program has it.
void Reject(const void* image, size_t bytes, const char* text, const char* why) {
  State& state = *the_state;
  base::MutexLock lock(state.mutex);
  const auto found = state.sites_of.find(text);
  if (found == state.sites_of.end()) return;
  --state.modules;
  state.sites -= found->second;
  state.sites_of.erase(found);
  NoteRefused(state, {static_cast<const char*>(image), bytes}, why);
}

void Release(char* text) {
  {
    base::MutexLock lock(the_state->mutex);
    the_state->sites_of.erase(text);
  }
  std::free(text);
}
size_t Maps() { return the_state->set.maps.size(); }
const char* Symbol(size_t map) { return the_state->symbols[map].c_str(); }
size_t Bytes(size_t map) { return BytesOf(the_state->set.maps[map]); }

void Take(size_t map, const void* contents) {
  base::MutexLock lock(the_state->mutex);
  if (contents == nullptr) {
    ++the_state->unread;
  } else {
    the_state->totals.Add(map, contents);
  }
}

const char* Title(size_t map) { return the_state->set.maps[map].name.c_str(); }

size_t Spans(size_t map, const void* contents, Span* found, size_t room, uint64_t* lost) {
  State& state = *the_state;
  base::MutexLock lock(state.mutex);
  return SpansIn(state.set.maps[map], contents, state.totals, {found, room}, lost);
}

void Report() {
  State& state = *the_state;
  base::MutexLock lock(state.mutex);
  std::string text;
  for (const auto* sentences : {&state.refused, &state.notes}) {
    for (const std::string& sentence : *sentences) text += base::Printable(sentence) + "\n";
  }
  text += "probes at " + std::to_string(state.sites) + " places of " +
          std::to_string(state.modules) + " modules\n";
  if (state.sites == 0 && state.refused.empty() && state.kernels != "*") {
    text += "no kernel whose name in the module fits '" + base::Printable(state.kernels) +
            "' was loaded with such places: names are as cuobjdump shows them\n";
  }
  if (state.unread != 0) {
    text += std::to_string(state.unread) +
            " maps could not be read, because the session or its context had ended: what is below "
            "lacks them\n";
  }
  text += state.totals.Text();
  FILE* file = state.output.empty() ? stderr : wire::OpenStream(state.output.c_str(), "a");
  if (file == nullptr) {
    std::fprintf(stderr, "longwire: the report of probes cannot be written to %s\n",
                 state.output.c_str());
    file = stderr;
  }
  std::fputs(text.c_str(), file);
  if (file != stderr) std::fclose(file);
}

constexpr Api kApi{RewriteImage, Release, Reject, Refuse, Maps,  Symbol,
                   Bytes,        Take,    Spans,  Title,  Report};

// False: it cannot be read, or is larger than any object.
bool ReadObjectFile(const std::string& path, std::string* object) {
  FILE* file = wire::OpenStream(path.c_str(), "r");
  if (file == nullptr) return false;
  object->resize(policy::kMaxObjectBytes);
  object->resize(std::fread(object->data(), 1, object->size(), file));
  const bool good = std::ferror(file) == 0 && std::fgetc(file) == EOF;
  std::fclose(file);
  return good;
}

const Api* Open(const std::string& path, std::string kernels, std::string output,
                std::string* sentence) {
  std::string object;
  if (!ReadObjectFile(path, &object)) {
    *sentence = path + " cannot be read: name an object of probes, made by clang -target bpf";
    return nullptr;
  }
  auto set = LoadProbes(std::as_bytes(std::span(object)), nullptr, sentence);
  if (!set) {
    *sentence = path + ": " + *sentence;
    return nullptr;
  }
  if (kernels.empty()) kernels = "*";
  the_state = new State(std::move(*set), std::move(kernels), std::move(output));
  return &kApi;
}

}  // namespace

}  // namespace longwire::probe

extern "C" __attribute__((visibility("default"))) const longwire::probe::Api* longwire_probe_api(
    const char* version, const char* object, const char* kernels, const char* output,
    char* sentence, size_t room) {
  std::string said;
  const longwire::probe::Api* api = nullptr;
  if (std::strcmp(version, LONGWIRE_VERSION) != 0) {
    said = "the library of probes is of version " LONGWIRE_VERSION
           ", and libcuda.so.1 of another: install longwire-client again";
  } else {
    api = longwire::probe::Open(object, kernels, output, &said);
  }
  if (room > 0) std::snprintf(sentence, room, "%s", said.c_str());
  return api;
}
