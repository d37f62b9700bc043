// Certificates for tests: an authority in a folder of the test's own, and what it signs, with any
// dates.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "link/certificates/pem_files.h"
#include "link/transport/tls_files.h"

namespace longwire::identity {

constexpr std::time_t kHour = 3600;

// A folder that goes with the object.
class Folder {
 public:
  Folder() {
    char path[] = "/tmp/longwire-identity-XXXXXX";
    if (mkdtemp(path) != nullptr) path_ = path;
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

// Valid from `from` to `until` hours from now.
inline certificates::Validity Hours(int from, int until) {
  std::time_t now = std::time(nullptr);
  return {now + from * kHour, now + until * kHour};
}

// An authority whose files lie in `folder`, together with all that it signs.
class Authority {
 public:
  Authority(std::string folder, const std::string& name = "Test authority")
      : folder_(std::move(folder)) {
    std::string sentence;
    auto made = certificates::MakeAuthority(name, Hours(-200, 1000), &sentence);
    EXPECT_TRUE(made && certificates::MakeFolder(folder_, &sentence)) << sentence;
    if (!made) return;
    issued_ = *made;
    EXPECT_TRUE(
        certificates::WriteFiles(certificates::FilesOf(folder_ + "/ca"), issued_, true, &sentence));
  }

  transport::TlsFiles Server(const std::vector<std::string>& names,
                             certificates::Validity validity = Hours(-1, 100),
                             const std::string& file = "server") {
    std::string sentence;
    return Write(file, certificates::IssueServer(issued_, names, validity, &sentence));
  }
  transport::TlsFiles Client(const std::string& name,
                             certificates::Validity validity = Hours(-1, 100),
                             const std::string& file = "") {
    std::string sentence;
    return Write(file.empty() ? name : file,
                 certificates::IssueClient(issued_, name, validity, &sentence));
  }
  // Of a server that shows it to other servers, too.
  transport::TlsFiles Peer(const std::vector<std::string>& names,
                           certificates::Validity validity = Hours(-1, 100)) {
    std::string sentence;
    return Write(names.front(), certificates::IssuePeer(issued_, names, validity, &sentence));
  }
  std::string certificate() const { return folder_ + "/ca.crt"; }

 private:
  transport::TlsFiles Write(const std::string& name,
                            const std::optional<certificates::Issued>& issued) {
    std::string sentence;
    certificates::PemFiles files = certificates::FilesOf(folder_ + "/" + name);
    EXPECT_TRUE(issued && certificates::WriteFiles(files, *issued, true, &sentence)) << sentence;
    return {files.certificate, files.key, certificate()};
  }

  std::string folder_;
  certificates::Issued issued_;
};

struct Said {
  int status = -1;
  std::string text;  // standard output and standard error
};

// What a shell command says.
inline Said Shell(const std::string& command) {
  Said said;
  FILE* pipe = popen(("{ " + command + "; } 2>&1").c_str(), "r");
  if (pipe == nullptr) return said;
  std::array<char, 4096> part;
  while (size_t length = fread(part.data(), 1, part.size(), pipe)) {
    said.text.append(part.data(), length);
  }
  said.status = pclose(pipe);
  if (WIFEXITED(said.status)) said.status = WEXITSTATUS(said.status);
  return said;
}

}  // namespace longwire::identity
