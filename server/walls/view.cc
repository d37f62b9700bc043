#include "server/walls/view.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "server/protocol/starter.h"

namespace longwire::walls {
namespace {

// Covers /tmp in the starter's own namespace of mounts.
const std::string kBase = "/tmp";
const std::string kRoot = starter::kRoot;
constexpr unsigned kPlain = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
constexpr const char* kSystem[] = {"/usr",
                                   "/bin",
                                   "/sbin",
                                   "/lib",
                                   "/lib32",
                                   "/lib64",
                                   "/libx32",
                                   "/opt",
                                   "/sys",
                                   "/etc/ld.so.cache",
                                   "/etc/alternatives",
                                   "/etc/localtime",
                                   "/etc/nvidia",
                                   "/etc/OpenCL"};
constexpr const char* kDevices[] = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random",
                                    "/dev/urandom"};

struct Tree {
  std::string path;
  bool folder;
  int mount;
};
using Links = std::vector<std::pair<std::string, std::string>>;  // path → where it leads

std::vector<std::string> NvidiaNodes() {
  glob_t found{};
  glob("/dev/nvidia*", 0, nullptr, &found);
  std::vector<std::string> nodes(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  globfree(&found);
  return nodes;
}

bool Tmpfs(const std::string& path, const char* options) {
  return mount("tmpfs", path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options) == 0;
}

bool Attributes(int tree, uint64_t set) {
  mount_attr attributes{};
  attributes.attr_set = set;
  return mount_setattr(tree, "", AT_EMPTY_PATH | AT_RECURSIVE, &attributes, sizeof(attributes)) ==
         0;
}

// The part of the host's files, or a link that leads there as well.
void Take(const std::string& path, uint64_t attributes, std::vector<Tree>* trees, Links* links) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) return;
  if (S_ISLNK(status.st_mode)) {
    std::error_code none;
    links->emplace_back(path, std::filesystem::read_symlink(path, none));
    return;
  }
  int tree = open_tree(AT_FDCWD, path.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
  if (tree < 0 || !Attributes(tree, attributes)) return;
  trees->push_back({path, S_ISDIR(status.st_mode), tree});
}

// The tree appears at `target`.
bool Attach(const Tree& tree, const std::string& target) {
  std::error_code problem;
  std::filesystem::path made = target;
  std::filesystem::create_directories(tree.folder ? made : made.parent_path(), problem);
  if (!tree.folder) close(open(target.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0444));
  int result = move_mount(tree.mount, "", AT_FDCWD, target.c_str(), MOVE_MOUNT_F_EMPTY_PATH);
  close(tree.mount);
  return result == 0;
}

// Over /tmp.
bool Plant(const std::vector<Tree>& trees, const std::vector<Tree>& caches, const Links& links) {
  if (mkdir(kRoot.c_str(), 0755) != 0 || !Tmpfs(kRoot, "mode=755")) return false;
  std::error_code problem;
  for (const char* folder : {"/proc", "/tmp", "/cache", "/dev/shm"}) {
    std::filesystem::create_directories(kRoot + folder, problem);
  }
  for (const Tree& tree : trees) {
    if (!Attach(tree, kRoot + tree.path)) return false;
  }
  if (!caches.empty() && !Attach(caches[0], starter::kTenants)) return false;
  for (const auto& [path, target] : links) {
    std::filesystem::create_directories(std::filesystem::path(kRoot + path).parent_path(), problem);
    if (symlink(target.c_str(), (kRoot + path).c_str()) != 0 && errno != EEXIST) return false;
  }
  // Others' limits and use of memory; a host may have none.
  Tmpfs(kRoot + "/sys/fs/cgroup", "mode=555");
  return mount(nullptr, kRoot.c_str(), nullptr,
               MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, nullptr) == 0 &&
         mount(nullptr, kBase.c_str(), nullptr, MS_SHARED, nullptr) == 0;
}

}  // namespace

std::vector<gid_t> DeviceGroups() {
  std::vector<gid_t> groups;
  for (const std::string& node : NvidiaNodes()) {
    struct stat status {};
    bool known = stat(node.c_str(), &status) == 0;
    bool wanted = known && status.st_gid != 0 && (status.st_mode & S_IWOTH) == 0;
    if (wanted && std::ranges::count(groups, status.st_gid) == 0) groups.push_back(status.st_gid);
  }
  return groups;
}

bool BuildView(const std::vector<std::string>& more, const std::string& tenants) {
  if (unshare(CLONE_NEWNS) != 0) return false;
  if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  std::vector<Tree> trees, caches;
  Links links;
  for (const char* path : kSystem) Take(path, kPlain | MOUNT_ATTR_RDONLY, &trees, &links);
  for (const std::string& path : more) Take(path, kPlain | MOUNT_ATTR_RDONLY, &trees, &links);
  for (const char* path : kDevices) Take(path, MOUNT_ATTR_NOSUID, &trees, &links);
  for (const std::string& node : NvidiaNodes()) Take(node, MOUNT_ATTR_NOSUID, &trees, &links);
  if (!tenants.empty()) Take(tenants, kPlain | MOUNT_ATTR_NOEXEC, &caches, &links);
  // All are taken before /tmp is covered: they may lie there.
  if (!Tmpfs(kBase, "mode=755")) return false;
  if (Plant(trees, caches, links)) return true;
  const int error = errno;
  umount2(kBase.c_str(), MNT_DETACH);
  errno = error;
  return false;
}

}  // namespace longwire::walls
