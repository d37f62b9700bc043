#include "cli/cert/issued.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "link/certificates/pem_files.h"

namespace longwire::cli {
namespace {

// Of longwire-signer, as its unit sets it (deploy/systemd).
constexpr const char* kSignersFolder = "/var/lib/longwire-signer/issued";

std::string FolderOfIssued(const std::string& folder) { return folder + "/issued"; }

}  // namespace

bool RecordIssued(const std::string& folder, const std::string& certificate,
                  std::string* sentence) {
  transport::CertificatePointer parsed = transport::ParseCertificate(certificate);
  if (parsed == nullptr || !certificates::MakeFolder(FolderOfIssued(folder), sentence))
    return false;
  const std::string path =
      FolderOfIssued(folder) + "/" + transport::Describe(parsed.get()).serial + ".crt";
  return certificates::WriteText(path, certificate, certificates::Readers::kAll, true, sentence);
}

std::string UsualSignersFolder() {
  std::error_code error;
  const bool there = std::filesystem::exists(kSignersFolder, error);
  return there || error ? kSignersFolder : "";
}

bool FindIssued(const std::string& folder, const std::string& signers, const std::string& name,
                std::vector<transport::CertificatePointer>* found, std::string* sentence) {
  std::set<std::string> serials;
  for (const std::string& place : {folder, FolderOfIssued(folder), signers}) {
    if (place.empty()) continue;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(place, error)) {
      if (entry.path().extension() != ".crt") continue;
      std::string unread;
      auto text = certificates::ReadText(entry.path().string(), &unread);
      auto certificate = text ? transport::ParseCertificate(*text) : nullptr;
      if (certificate == nullptr) continue;
      transport::Certificate facts = transport::Describe(certificate.get());
      if (facts.common_name != name || facts.authority || !serials.insert(facts.serial).second) {
        continue;
      }
      found->push_back(std::move(certificate));
    }
    if (!error || place != signers) continue;
    *sentence = "what longwire-signer has issued cannot be read in " + signers + ": " +
                error.message() + "; run it as root, or name the folder with --issued";
    return false;
  }
  return true;
}

}  // namespace longwire::cli
