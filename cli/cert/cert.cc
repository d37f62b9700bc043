// longwire cert: a private authority and the certificates it signs.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>

#include "base/environment.h"
#include "cli/cert/issued.h"
#include "cli/cert/revoke.h"
#include "cli/cert/show.h"
#include "cli/commands.h"
#include "cli/enrol/renew.h"
#include "cli/json/json_object.h"
#include "link/certificates/certificate.h"
#include "link/certificates/pem_files.h"

namespace longwire::cli {
namespace {

using certificates::FilesOf;
using certificates::Issued;
using certificates::PemFiles;
using certificates::ValidFor;
using certificates::Validity;

constexpr const char* kCertFooter =
    "Keys are written readable by their owner only. The exit status is 0 if it is done, 1 if that "
    "failed, 2 if this command was called wrongly.";

constexpr int kAuthorityDays = 3650;
constexpr int kDays = 365;
constexpr int kMaxDays = 36500;
constexpr size_t kMaxName = 64;  // of a certificate's common name

std::string UsualFolder() {
  const char* home = base::Environment("HOME");
  return std::string(home == nullptr ? "." : home) + "/.config/longwire/authority";
}

struct Wish {
  std::string folder = UsualFolder();
  std::string name;
  std::string issued;
  int days = 0;  // 0: not given
  bool force = false;
  bool json = false;
};

int Fail(const std::string& sentence) {
  std::fprintf(stderr, "longwire cert: %s\n", sentence.c_str());
  return 1;
}

// It is printed for configurations, which want absolute paths.
Wish Absolute(Wish wish) {
  wish.folder = std::filesystem::absolute(wish.folder).lexically_normal().string();
  return wish;
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

JsonObject Described(const PemFiles& files, const Issued& issued) {
  JsonObject object;
  object.Add("certificate", files.certificate).Add("key", files.key);
  return object.Add("valid_until", ValidUntil(issued));
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
  if (wish.json) {
    Described(files, *made).Print();
    return 0;
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
  if (wish.json) {
    Described(*files, *made).Add("authority", wish.folder + "/ca.crt").Print();
    return 0;
  }
  std::printf("%s, valid until %s\n%s\n", files->certificate.c_str(), ValidUntil(*made).c_str(),
              files->key.c_str());
  return 0;
}

int Server(const Wish& wish) {
  std::vector<std::string> names = Split(wish.name);
  PemFiles files;
  auto issue = [&](const Issued& authority, Validity validity, std::string* sentence) {
    // Servers of a program show it to each other, too (docs/several-hosts.md).
    return certificates::IssuePeer(authority, names, validity, sentence);
  };
  int status = Sign(wish, names.front(), issue, &files);
  if (status != 0 || wish.json) return status;
  std::printf(
      "In the server's configuration, with the paths that they have there:\n"
      "tls:\n  certificate: %s\n  key: %s\n  authority: %s/ca.crt\n",
      files.certificate.c_str(), files.key.c_str(), wish.folder.c_str());
  return 0;
}

int Peer(const Wish& wish) {
  std::vector<std::string> names = Split(wish.name);
  PemFiles files;
  auto issue = [&](const Issued& authority, Validity validity, std::string* sentence) {
    return certificates::IssuePeer(authority, names, validity, sentence);
  };
  return Sign(wish, names.front(), issue, &files);
}

int Client(const Wish& wish) {
  PemFiles files;
  auto issue = [&](const Issued& authority, Validity validity, std::string* sentence) {
    return certificates::IssueClient(authority, wish.name, validity, sentence);
  };
  // Checked before it names a file.
  int status = Sign(wish, wish.name, issue, &files);
  if (status != 0 || wish.json) return status;
  std::printf(
      "On the user's host put them into ~/.config/longwire as client.crt and client.key, "
      "and %s/ca.crt as ca.crt.\n"
      "In the server's configuration list the identity '%s' at a tenant.\n",
      wish.folder.c_str(), wish.name.c_str());
  return 0;
}

void AddFolder(CLI::App& command, const std::shared_ptr<Wish>& wish) {
  command
      .add_option(
          "--dir", wish->folder,
          "folder of the authority (default ~/.config/longwire/authority); certificates are "
          "written there too")
      ->type_name("D");
  command.add_flag("--json", wish->json, "the result for programs");
  command.footer(kCertFooter);
}

// What makes files.
void AddFiles(CLI::App& command, const std::shared_ptr<Wish>& wish, int days) {
  AddFolder(command, wish);
  AddNumber(command, "--days", 1, kMaxDays, &wish->days,
            "how long it is valid (default " + std::to_string(days) + ")");
  command.add_flag("--force", wish->force, "replace files that are there already");
}

void AddInit(CommandLine& line, CLI::App& cert) {
  auto wish = std::make_shared<Wish>();
  CLI::App& command = line.Add(
      &cert, "init", "make an authority: D/ca.crt for everybody, D/ca.key to be kept secret",
      [wish] { return Init(Absolute(*wish)); });
  command.add_option("--name", wish->name, "the authority's name")->type_name("NAME");
  AddFiles(command, wish, kAuthorityDays);
}

void AddSigned(CommandLine& line, CLI::App& cert, const char* name, const char* about,
               const char* of_name, int (*sign)(const Wish&)) {
  auto wish = std::make_shared<Wish>();
  const std::string missing =
      "--name is missing: " + std::string(of_name) + "; see longwire cert " + name + " --help";
  CLI::App& command = line.Add(&cert, name, about, [=] {
    if (wish->name.empty()) RefuseValue(missing);
    return sign(Absolute(*wish));
  });
  command.add_option("--name", wish->name, of_name)->type_name("NAME");
  AddFiles(command, wish, kDays);
}

void AddRevoke(CommandLine& line, CLI::App& cert) {
  auto wish = std::make_shared<Wish>();
  CLI::App& command =
      line.Add(&cert, "revoke",
               "take all certificates of a user back, or the one in a file: D/revoked.crl, which "
               "servers read (tls.revocations) and whose sessions they end",
               [wish] {
                 const Wish absolute = Absolute(*wish);
                 return Revoke({absolute.folder, absolute.name, absolute.issued, absolute.json});
               });
  command.add_option("NAME|FILE", wish->name, "whose, or which; without it that list is only made");
  command
      .add_option("--issued", wish->issued,
                  "where longwire-signer keeps what it has issued (default "
                  "/var/lib/longwire-signer/issued)")
      ->type_name("FOLDER");
  AddFolder(command, wish);
}

void AddShow(CommandLine& line, CLI::App& cert) {
  auto file = std::make_shared<std::string>();
  auto json = std::make_shared<bool>();
  CLI::App& command = line.Add(&cert, "show", "what a certificate says", [=] {
    if (file->empty()) RefuseValue("which file? See longwire cert show --help");
    return ShowCertificate(*file, *json);
  });
  command.add_option("FILE", *file, "the certificate");
  command.add_flag("--json", *json, "the certificates for programs");
  command.footer(kCertFooter);
}

}  // namespace

void AddCert(CommandLine& line) {
  CLI::App& cert =
      line.Add(nullptr, "cert", "certificates by which servers and users know each other");
  AddInit(line, cert);
  AddSigned(line, cert, "server",
            "sign a certificate for a server that clients reach by these names",
            "host names or IP addresses, with commas between", Server);
  AddSigned(line, cert, "peer",
            "sign a certificate for a server that is a client of others of its kind, such as a "
            "member of etcd (docs/pool.md)",
            "host names or IP addresses, with commas between", Peer);
  AddSigned(line, cert, "client",
            "sign a certificate for a user; the server's configuration lists NAME at a tenant",
            "the user's identity", Client);
  AddRenew(line, cert);
  AddRevoke(line, cert);
  AddShow(line, cert);
  cert.footer(kCertFooter);
}

}  // namespace longwire::cli
