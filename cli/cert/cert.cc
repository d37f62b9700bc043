// longwire cert: a private authority and the certificates it signs.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/environment.h"
#include "cli/cert/issued.h"
#include "cli/cert/revoke.h"
#include "cli/cert/show.h"
#include "cli/enrol/renew.h"
#include "cli/options.h"
#include "link/certificates/certificate.h"
#include "link/certificates/pem_files.h"
#include "wire/number.h"

namespace longwire::cli {
namespace {

using certificates::FilesOf;
using certificates::Issued;
using certificates::PemFiles;
using certificates::ValidFor;
using certificates::Validity;

constexpr const char* kHelp =
    R"(longwire cert: certificates by which servers and users know each other.

  longwire cert init [--dir D] [--name NAME] [--days N] [--force]
      make an authority: D/ca.crt for everybody, D/ca.key to be kept secret
  longwire cert server --name HOST[,IP...] [--dir D] [--days N] [--force]
      sign a certificate for a server that clients reach by these names
  longwire cert client --name NAME [--dir D] [--days N] [--force]
      sign a certificate for a user; the server's configuration lists NAME at a tenant
  longwire cert renew [--help]
      a new certificate for this user, from the server's signer
  longwire cert revoke [NAME|FILE] [--dir D] [--issued FOLDER]
      take all certificates of a user back, or the one in FILE: D/revoked.crl, which servers read
      (tls.revocations) and whose sessions they end. Without a name: only make that list. FOLDER is
      where longwire-signer keeps what it has issued (default /var/lib/longwire-signer/issued)
  longwire cert show FILE
      what a certificate says

  --dir D     folder of the authority (default ~/.config/longwire/authority); certificates are
              written there too
  --days N    how long it is valid (default 3650 for an authority, else 365)
  --force     replace files that are there already

Keys are written readable by their owner only. The exit status is 0 if it is done, 1 if that failed,
2 if this command was called wrongly.
)";

constexpr int kAuthorityDays = 3650;
constexpr int kDays = 365;
constexpr int kMaxDays = 36500;
constexpr size_t kMaxName = 64;  // of a certificate's common name

struct Wish {
  std::string folder;
  std::string name;
  std::string issued;
  int days = 0;  // 0: not given
  bool force = false;
};

int Fail(const std::string& sentence) {
  std::fprintf(stderr, "longwire cert: %s\n", sentence.c_str());
  return 1;
}

Taken TakeDays(const Arguments& arguments, size_t* i, int* days) {
  std::string text;
  Taken taken = TakeOption("cert", arguments, "--days", i, &text);
  if (taken != Taken::kYes) return taken;
  auto number = wire::ParseNumber(text, 1, kMaxDays);
  if (number) *days = static_cast<int>(*number);
  if (number) return Taken::kYes;
  Fail("--days expects a number from 1 to " + std::to_string(kMaxDays) + ", found '" + text + "'");
  return Taken::kBad;
}

// False with a sentence on standard error.
bool ParseWish(const Arguments& arguments, Wish* wish) {
  const char* home = base::Environment("HOME");
  wish->folder = std::string(home == nullptr ? "." : home) + "/.config/longwire/authority";
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    Taken taken = TakeOption("cert", arguments, "--dir", &i, &wish->folder);
    if (taken == Taken::kNo) taken = TakeOption("cert", arguments, "--name", &i, &wish->name);
    if (taken == Taken::kNo) taken = TakeDays(arguments, &i, &wish->days);
    if (taken == Taken::kNo && arguments[0] == "revoke") {
      taken = TakeOption("cert", arguments, "--issued", &i, &wish->issued);
    }
    if (taken == Taken::kBad) return false;
    if (taken == Taken::kYes) continue;
    if (word == "--force") {
      wish->force = true;
    } else if (arguments[0] == "revoke" && wish->name.empty() && !word.starts_with("-")) {
      wish->name = word;
    } else {
      Fail("unknown option '" + word + "'. See longwire cert --help");
      return false;
    }
  }
  // It is printed for configurations, which want absolute paths.
  wish->folder = std::filesystem::absolute(wish->folder).lexically_normal().string();
  return true;
}

std::vector<std::string> Split(const std::string& list) {
  std::vector<std::string> parts;
  for (size_t start = 0; start <= list.size();) {
    size_t comma = std::min(list.find(',', start), list.size());
    parts.push_back(list.substr(start, comma - start));
    start = comma + 1;
  }
  return parts;
}

std::string ValidUntil(const Issued& issued) {
  transport::CertificatePointer made = transport::ParseCertificate(issued.certificate);
  return transport::DateText(transport::Describe(made.get()).not_after);
}

int Init(const Wish& wish) {
  std::string sentence;
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  std::string name = std::string("Longwire authority of ") + host;
  auto made =
      certificates::MakeAuthority(wish.name.empty() ? name.substr(0, kMaxName) : wish.name,
                                  ValidFor(wish.days == 0 ? kAuthorityDays : wish.days), &sentence);
  PemFiles files = FilesOf(wish.folder + "/ca");
  if (!made || !certificates::MakeFolder(wish.folder, &sentence) ||
      !certificates::WriteFiles(files, *made, wish.force, &sentence)) {
    return Fail(sentence);
  }
  std::printf(
      "%s: the authority, for servers and users; valid until %s\n"
      "%s: its key; whoever has it can be anybody, so keep it on this host\n",
      files.certificate.c_str(), ValidUntil(*made).c_str(), files.key.c_str());
  return 0;
}

// Signs and writes what `issue` makes; 0 with the files' names.
template <class Issue>
int Sign(const Wish& wish, const std::string& file, Issue issue, PemFiles* files) {
  std::string sentence;
  if (file == "ca") return Fail("'ca' is the authority's own file; choose another name");
  auto authority = certificates::ReadFiles(FilesOf(wish.folder + "/ca"), &sentence);
  if (!authority) return Fail(sentence + "; make an authority with: longwire cert init");
  auto made = issue(*authority, ValidFor(wish.days == 0 ? kDays : wish.days), &sentence);
  *files = FilesOf(wish.folder + "/" + file);
  if (!made || !certificates::WriteFiles(*files, *made, wish.force, &sentence) ||
      !RecordIssued(wish.folder, made->certificate, &sentence)) {
    return Fail(sentence);
  }
  std::printf("%s, valid until %s\n%s\n", files->certificate.c_str(), ValidUntil(*made).c_str(),
              files->key.c_str());
  return 0;
}

int Server(const Wish& wish) {
  std::vector<std::string> names = Split(wish.name);
  PemFiles files;
  auto issue = [&](const Issued& authority, Validity validity, std::string* sentence) {
    return certificates::IssueServer(authority, names, validity, sentence);
  };
  int status = Sign(wish, names.front(), issue, &files);
  if (status != 0) return status;
  std::printf(
      "In the server's configuration, with the paths that they have there:\n"
      "tls:\n  certificate: %s\n  key: %s\n  authority: %s/ca.crt\n",
      files.certificate.c_str(), files.key.c_str(), wish.folder.c_str());
  return 0;
}

int Client(const Wish& wish) {
  PemFiles files;
  auto issue = [&](const Issued& authority, Validity validity, std::string* sentence) {
    return certificates::IssueClient(authority, wish.name, validity, sentence);
  };
  // Checked before it names a file.
  int status = Sign(wish, wish.name, issue, &files);
  if (status != 0) return status;
  std::printf(
      "On the user's host put them into ~/.config/longwire as client.crt and client.key, "
      "and %s/ca.crt as ca.crt.\n"
      "In the server's configuration list the identity '%s' at a tenant.\n",
      wish.folder.c_str(), wish.name.c_str());
  return 0;
}

}  // namespace

int Cert(const Arguments& arguments) {
  if (!arguments.empty() && arguments[0] == "renew") {
    return Renew({arguments.begin() + 1, arguments.end()});
  }
  if (arguments.empty() || std::ranges::any_of(arguments, IsHelp)) {
    std::fputs(kHelp, stdout);
    return arguments.empty() ? kUsageStatus : 0;
  }
  const std::string& action = arguments[0];
  if (action == "show" && arguments.size() == 2) return ShowCertificate(arguments[1]);
  Wish wish;
  if (action != "init" && action != "server" && action != "client" && action != "revoke") {
    std::fputs(
        "longwire cert: init, server, client, renew, revoke or show FILE? See longwire cert "
        "--help\n",
        stderr);
    return kUsageStatus;
  }
  if (!ParseWish(arguments, &wish)) return kUsageStatus;
  if (action == "init") return Init(wish);
  if (action == "revoke") return Revoke({wish.folder, wish.name, wish.issued});
  if (wish.name.empty()) {
    Fail("--name is missing: " +
         std::string(action == "server" ? "host names or IP addresses" : "the user's identity"));
    return kUsageStatus;
  }
  return action == "server" ? Server(wish) : Client(wish);
}

}  // namespace longwire::cli
