#include "server/daemon/checkpoints/piece_cipher.h"

#include <openssl/evp.h>
#include <openssl/kdf.h>

#include <cstring>
#include <memory>
#include <string_view>

namespace longwire::daemon {
namespace {

using Context = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

constexpr std::string_view kPurpose = "longwire checkpoint 1";

unsigned char* Bytes(std::span<std::byte> bytes) {
  return reinterpret_cast<unsigned char*>(bytes.data());
}

// HKDF with SHA-256.
bool Derive(const CheckpointKey& key, const Digest& salt, Digest* derived) {
  std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)> context(
      EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nullptr), EVP_PKEY_CTX_free);
  size_t bytes = derived->size();
  const auto* purpose = reinterpret_cast<const unsigned char*>(kPurpose.data());
  return context != nullptr && EVP_PKEY_derive_init(context.get()) == 1 &&
         EVP_PKEY_CTX_set_hkdf_md(context.get(), EVP_sha256()) == 1 &&
         EVP_PKEY_CTX_set1_hkdf_salt(context.get(), salt.data(), salt.size()) == 1 &&
         EVP_PKEY_CTX_set1_hkdf_key(context.get(), key.data(), key.size()) == 1 &&
         EVP_PKEY_CTX_add1_hkdf_info(context.get(), purpose, kPurpose.size()) == 1 &&
         EVP_PKEY_derive(context.get(), derived->data(), &bytes) == 1 && bytes == derived->size();
}

std::array<unsigned char, 12> Nonce(uint64_t number, bool last) {
  std::array<unsigned char, 12> nonce{};
  std::memcpy(nonce.data(), &number, sizeof(number));
  nonce.back() = last ? 1 : 0;
  return nonce;
}

}  // namespace

PieceCipher::PieceCipher(const CheckpointKey& key, const Digest& salt)
    : usable_(Derive(key, salt, &key_)) {}

bool PieceCipher::Seal(std::span<const unsigned char> before, bool last, std::span<std::byte> bytes,
                       std::span<std::byte> tag) {
  Context context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  const auto nonce = Nonce(sealed_++, last);
  int out = 0;
  return usable_ && context != nullptr &&
         EVP_EncryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key_.data(), nonce.data()) ==
             1 &&
         EVP_EncryptUpdate(context.get(), nullptr, &out, before.data(),
                           static_cast<int>(before.size())) == 1 &&
         EVP_EncryptUpdate(context.get(), Bytes(bytes), &out, Bytes(bytes),
                           static_cast<int>(bytes.size())) == 1 &&
         EVP_EncryptFinal_ex(context.get(), Bytes(tag), &out) == 1 &&
         EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, tag.data()) == 1;
}

bool PieceCipher::Open(uint64_t number, std::span<const unsigned char> before, bool last,
                       std::span<std::byte> bytes, std::span<std::byte> tag) const {
  Context context(EVP_CIPHER_CTX_new(), EVP_CIPHER_CTX_free);
  const auto nonce = Nonce(number, last);
  int out = 0;
  std::array<unsigned char, kTagBytes> rest{};
  return usable_ && context != nullptr &&
         EVP_DecryptInit_ex(context.get(), EVP_aes_256_gcm(), nullptr, key_.data(), nonce.data()) ==
             1 &&
         EVP_DecryptUpdate(context.get(), nullptr, &out, before.data(),
                           static_cast<int>(before.size())) == 1 &&
         EVP_DecryptUpdate(context.get(), Bytes(bytes), &out, Bytes(bytes),
                           static_cast<int>(bytes.size())) == 1 &&
         EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, tag.data()) == 1 &&
         EVP_DecryptFinal_ex(context.get(), rest.data(), &out) == 1;
}

}  // namespace longwire::daemon
