#include "cli/cert/issued.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>

#include "link/certificates/pem_files.h"

namespace longwire::cli {
namespace {

std::string FolderOfIssued(const std::string& folder) { return folder + "/issued"; }

}  // namespace

bool RecordIssued(const std::string& folder, const std::string& certificate,
                  std::string* sentence) {
  transport::CertificatePointer parsed = transport::ParseCertificate(certificate);
  if (parsed == nullptr || !certificates::MakeFolder(FolderOfIssued(folder), sentence))
    return false;
  const std::string path =
      FolderOfIssued(folder) + "/" + transport::Describe(parsed.get()).serial + ".crt";
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << certificate;
  if (file.flush()) return true;
  *sentence = "cannot write " + path + ": " + std::strerror(errno);
  return false;
}

std::vector<transport::CertificatePointer> IssuedTo(const std::string& folder,
                                                    const std::string& name) {
  std::vector<transport::CertificatePointer> found;
  std::set<std::string> serials;
  for (const std::string& place : {folder, FolderOfIssued(folder)}) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(place, error)) {
      if (entry.path().extension() != ".crt") continue;
      std::string sentence;
      auto text = certificates::ReadText(entry.path().string(), &sentence);
      auto certificate = text ? transport::ParseCertificate(*text) : nullptr;
      if (certificate == nullptr) continue;
      transport::Certificate facts = transport::Describe(certificate.get());
      if (facts.common_name != name || facts.authority || !serials.insert(facts.serial).second) {
        continue;
      }
      found.push_back(std::move(certificate));
    }
  }
  return found;
}

}  // namespace longwire::cli
