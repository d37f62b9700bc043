#include "probe/triton.h"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>
#include <vector>

#include "base/environment.h"
#include "probe/own_files.h"
#include "probe/rewrite.h"
#include "softgpu/engine/ptx/lexer.h"
#include "softgpu/engine/ptx/ptx.h"
#include "wire/limits.h"

namespace longwire::probe {

namespace {

constexpr size_t kFolders = 1 << 16;      // of a cache, that are looked into
constexpr size_t kFilesOfFolder = 64;     // Triton has some ten
constexpr size_t kReadBytes = 256 << 20;  // of cubins as large as the one that is looked for
constexpr char kCubin[] = ".cubin";
constexpr char kText[] = ".text.";  // the section of a kernel, before its name

bool IsCubin(std::span<const char> image) {
  return image.size() > sizeof(Elf64_Ehdr) && std::memcmp(image.data(), ELFMAG, SELFMAG) == 0 &&
         image[EI_CLASS] == ELFCLASS64;
}

// Of `cubin`'s bytes from `offset` on, or nothing.
template <class T>
bool ReadAt(std::span<const char> cubin, uint64_t offset, T* value) {
  if (offset > cubin.size() || cubin.size() - offset < sizeof(T)) return false;
  std::memcpy(value, cubin.data() + offset, sizeof(T));
  return true;
}

// The names of kernels, and of functions that are called as such: each has a section. None if the
// headers cannot be read.
std::set<std::string> CodeIn(std::span<const char> cubin) {
  Elf64_Ehdr head;
  Elf64_Shdr names, section;
  if (!ReadAt(cubin, 0, &head) || head.e_shentsize != sizeof(Elf64_Shdr) ||
      !ReadAt(cubin, head.e_shoff + uint64_t{head.e_shstrndx} * sizeof(section), &names) ||
      names.sh_offset > cubin.size() || names.sh_size > cubin.size() - names.sh_offset) {
    return {};
  }
  const std::span<const char> text = cubin.subspan(names.sh_offset, names.sh_size);
  std::set<std::string> code;
  for (uint64_t i = 0; i < head.e_shnum; ++i) {
    if (!ReadAt(cubin, head.e_shoff + i * sizeof(section), &section)) return {};
    if (section.sh_name >= text.size()) continue;
    const char* name = text.data() + section.sh_name;
    const std::string whole(name, strnlen(name, text.size() - section.sh_name));
    if (whole.starts_with(kText)) code.insert(whole.substr(std::strlen(kText)));
  }
  return code;
}

// Empty, or why the text is not what the cubin was made of.
std::string Problem(const std::string& ptx, const std::set<std::string>& code, int capability) {
  softgpu::PtxModule module;
  try {
    module = softgpu::ParsePtx(ptx);
  } catch (const softgpu::PtxError& error) {
    return error.what();
  }
  if (module.target > capability) {
    return "it is for devices of compute capability " + std::to_string(module.target / 10) + "." +
           std::to_string(module.target % 10);
  }
  std::set<std::string> kernels;
  for (const softgpu::PtxFunction& function : module.functions) {
    if (function.has_body) kernels.insert(std::string(function.name));
  }
  const auto missing =
      std::ranges::find_if(code, [&](const std::string& name) { return !kernels.contains(name); });
  if (code.empty()) return "no kernel can be found in the code";
  return missing == code.end() ? "" : "it lacks " + *missing;
}

// The file that equals the cubin, without its ending; empty: there is none.
std::string FindEqual(const std::string& cache, std::span<const char> cubin) {
  const std::string_view wanted(cubin.data(), cubin.size());
  // Where the user has put it he says himself; within it no link is followed.
  std::error_code error;
  const std::string root = std::filesystem::canonical(cache, error).string();
  if (error) return "";
  size_t read = 0;
  for (const std::string& hash : NamesIn(root, kFolders)) {
    const std::string folder = root + "/" + hash;
    for (const std::string& name : NamesIn(folder, kFilesOfFolder)) {
      size_t bytes = 0;
      const std::string path = folder + "/" + name;
      if (!name.ends_with(kCubin) || !IsOwnFile(path, cubin.size(), &bytes)) continue;
      if (bytes != cubin.size() || (read += bytes) > kReadBytes) continue;
      if (ReadOwnFile(path, bytes) == wanted) return path.substr(0, path.size() - strlen(kCubin));
    }
  }
  return "";
}

}  // namespace

std::string TritonCache() {
  const char* cache = base::Environment("TRITON_CACHE_DIR");
  if (cache != nullptr && *cache != '\0') return cache;
  const char* home = base::Environment("TRITON_HOME");
  if (home == nullptr || *home == '\0') home = base::Environment("HOME");
  return home == nullptr || *home == '\0' ? "" : std::string(home) + "/.triton/cache";
}

bool PtxInTritonCache(const std::string& cache, std::span<const char> cubin, int capability,
                      std::string* ptx, std::string* path, std::string* sentence) {
  sentence->clear();
  if (cache.empty() || !IsCubin(cubin) || cubin.size() > wire::kMaxImageBytes) return false;
  const std::string place = FindEqual(cache, cubin);
  if (place.empty()) return false;
  *path = place + ".ptx";
  *ptx = ReadOwnFile(*path, kMaxRewrittenBytes);
  std::string problem;
  if (ptx->empty()) {
    problem = "it is no file of yours, is empty or larger than 64 MiB";
  } else {
    ptx->resize(std::strlen(ptx->c_str()));
    problem = Problem(*ptx, CodeIn(cubin), capability);
  }
  if (problem.empty()) return true;
  *sentence = "Triton keeps it in its cache, but " + *path + " cannot be used: " + problem;
  return false;
}

}  // namespace longwire::probe
