#include "cli/program_notice.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "base/environment.h"
#include "cli/elf_program.h"

namespace longwire::cli {
namespace {

constexpr const char* kLibrary = "/libcuda.so.1";
// In every program that has CUDA in itself: the name of a library that it needs, or of the one that
// the CUDA runtime in it opens.
constexpr const char* kCudaMark = "libcuda";

// As execvp finds it, with links resolved as the dynamic linker's $ORIGIN has them; empty: nowhere.
std::string FindProgram(const std::string& name) {
  char resolved[PATH_MAX];
  if (name.find('/') != std::string::npos) {
    return realpath(name.c_str(), resolved) == nullptr ? "" : resolved;
  }
  const char* path = base::Environment("PATH");
  std::istringstream folders(path == nullptr ? "/bin:/usr/bin" : path);
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::string file = (folder.empty() ? "." : folder) + "/" + name;
    struct stat status {};
    if (access(file.c_str(), X_OK) != 0 || stat(file.c_str(), &status) != 0) continue;
    if (S_ISREG(status.st_mode) && realpath(file.c_str(), resolved) != nullptr) return resolved;
  }
  return "";
}

// Whether the dynamic linker will not look at LD_LIBRARY_PATH, because the program gets rights that
// its user has not; what it gets them by.
const char* GetsRights(const std::string& program) {
  struct stat status {};
  struct statvfs mount {};
  if (stat(program.c_str(), &status) != 0 || statvfs(program.c_str(), &mount) != 0) return nullptr;
  if ((mount.f_flag & ST_NOSUID) != 0) return nullptr;
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != getuid()) return "is setuid";
  bool setgid = (status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0;
  if (setgid && status.st_gid != getgid()) return "is setgid";
  bool capable = getxattr(program.c_str(), "security.capability", nullptr, 0) > 0;
  return capable && getuid() != 0 ? "has file capabilities" : nullptr;
}

void Replace(std::string* text, std::string_view token, const std::string& value) {
  for (size_t at = 0; (at = text->find(token, at)) != std::string::npos; at += value.size()) {
    text->replace(at, token.size(), value);
  }
}

// The other libcuda.so.1 to which the program's own search path leads; empty: none.
std::string OtherLibrary(const ElfProgram& elf, const std::string& program,
                         const std::string& library) {
  struct stat ours {};
  if (stat((library + kLibrary).c_str(), &ours) != 0) return "";
  const std::string origin = program.substr(0, program.rfind('/'));
  for (std::string folder : elf.first_folders) {
    Replace(&folder, "${ORIGIN}", origin);
    Replace(&folder, "$ORIGIN", origin);
    struct stat found {};
    if (stat((folder + kLibrary).c_str(), &found) != 0) continue;
    // The first one counts.
    bool same = found.st_dev == ours.st_dev && found.st_ino == ours.st_ino;
    return same ? "" : folder + kLibrary;
  }
  return "";
}

}  // namespace

std::string NoticeAbout(const std::string& name, const std::string& library) {
  const std::string program = FindProgram(name);
  auto elf = program.empty() ? std::nullopt : ReadElf(program);
  if (!elf) return "";
  const char* preloaded = base::Environment("LD_PRELOAD");
  bool found_anyway = preloaded != nullptr && std::strstr(preloaded, "libcuda") != nullptr;
  const char* rights = GetsRights(program);
  if ((rights != nullptr || !elf->has_interpreter) && FileContains(program, kCudaMark)) {
    if (rights != nullptr) {
      return name + " " + rights + ", so LD_LIBRARY_PATH is ignored and it does not find " +
             "Longwire's libcuda.so.1; run a copy of it without these rights";
    }
    return name + " is statically linked and may not find Longwire's libcuda.so.1 by " +
           "LD_LIBRARY_PATH; link it dynamically if it sees no device";
  }
  std::string other = found_anyway ? "" : OtherLibrary(*elf, program, library);
  if (other.empty()) return "";
  return name + " has an RPATH, which is searched first and leads it to " + other +
         ", not to Longwire's; set LD_PRELOAD=" + library + kLibrary +
         " for it, or take the RPATH away (patchelf --remove-rpath)";
}

}  // namespace longwire::cli
