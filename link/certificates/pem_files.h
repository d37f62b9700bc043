// Certificates and keys on disk.
#pragma once

#include <optional>
#include <string>

#include "link/certificates/authority.h"

namespace longwire::certificates {

// Where a certificate and the key to it lie: PATH.crt and PATH.key.
struct PemFiles {
  std::string certificate;
  std::string key;
};
PemFiles FilesOf(const std::string& path);

// Makes the folder and those above it, for this user alone. False with a sentence.
bool MakeFolder(const std::string& path, std::string* sentence);

// Writes both, the key readable by its owner only. What is there already stays, unless `replace`.
bool WriteFiles(const PemFiles& files, const Issued& issued, bool replace, std::string* sentence);

// Writes one file, which is there as a whole or not at all. What is there already stays, unless
// `replace`: then readers see the old or the new one.
enum class Readers { kOwner, kAll };
bool WriteText(const std::string& path, const std::string& text, Readers readers, bool replace,
               std::string* sentence);

// Reads both; a key that others can use is refused.
std::optional<Issued> ReadFiles(const PemFiles& files, std::string* sentence);
// At most a mebibyte of text.
std::optional<std::string> ReadText(const std::string& path, std::string* sentence);

}  // namespace longwire::certificates
