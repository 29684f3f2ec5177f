#include "trunkline/engine/srtp_crypto.hpp"

#if TRUNKLINE_HAVE_SRTP && TRUNKLINE_HAVE_CRYPTO

// HMAC of OpenSSL 3 allocates for each message; its SHA-1 of before does not, and is as fast.
#define OPENSSL_SUPPRESS_DEPRECATED
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/sha.h>
#include <srtp2/auth.h>
#include <srtp2/cipher.h>
#include <srtp2/srtp.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>

namespace trunkline::engine {

namespace {

constexpr std::size_t block_bytes = 16;

/// AES in counter mode as RFC 3711 4.1.1 has it: the counter starts at the salt xor the packet's own part.
struct CounterMode final {
    explicit CounterMode(EVP_CIPHER_CTX* made) : context(made) {}
    ~CounterMode() {
        EVP_CIPHER_CTX_free(context);
        OPENSSL_cleanse(salt.data(), salt.size());
    }

    srtp_cipher_t base{};
    EVP_CIPHER_CTX* context;
    std::array<std::uint8_t, block_bytes> salt{};
};

const EVP_CIPHER* cipher_of(int key_bytes) {
    // Fetched once: an implicit fetch takes a lock each time.
    static const EVP_CIPHER* const aes_128 = EVP_CIPHER_fetch(nullptr, "AES-128-CTR", nullptr);
    static const EVP_CIPHER* const aes_256 = EVP_CIPHER_fetch(nullptr, "AES-256-CTR", nullptr);
    if (key_bytes == SRTP_AES_ICM_128_KEY_LEN_WSALT) return aes_128;
    return key_bytes == SRTP_AES_ICM_256_KEY_LEN_WSALT ? aes_256 : nullptr;
}

extern const srtp_cipher_type_t counter_mode_128, counter_mode_256;

srtp_err_status_t cipher_alloc(srtp_cipher_pointer_t* made, int key_bytes, int) {
    if (cipher_of(key_bytes) == nullptr) return srtp_err_status_bad_param;
    EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
    auto* cipher = context == nullptr ? nullptr : new (std::nothrow) CounterMode(context);
    if (cipher == nullptr) {
        EVP_CIPHER_CTX_free(context);
        return srtp_err_status_alloc_fail;
    }
    const bool is_256 = key_bytes == SRTP_AES_ICM_256_KEY_LEN_WSALT;
    cipher->base.type = is_256 ? &counter_mode_256 : &counter_mode_128;
    cipher->base.algorithm = is_256 ? SRTP_AES_ICM_256 : SRTP_AES_ICM_128;
    cipher->base.key_len = key_bytes;
    cipher->base.state = cipher;
    *made = &cipher->base;
    return srtp_err_status_ok;
}

srtp_err_status_t cipher_dealloc(srtp_cipher_pointer_t cipher) {
    delete static_cast<CounterMode*>(cipher->state);
    return srtp_err_status_ok;
}

srtp_err_status_t cipher_init(void* state, const std::uint8_t* key) {
    auto& cipher = *static_cast<CounterMode*>(state);
    const int key_bytes = cipher.base.key_len - SRTP_SALT_LEN;
    std::copy_n(key + key_bytes, SRTP_SALT_LEN, cipher.salt.begin());
    const int done =
        EVP_EncryptInit_ex2(cipher.context, cipher_of(cipher.base.key_len), key, nullptr, nullptr);
    return done == 1 ? srtp_err_status_ok : srtp_err_status_cipher_fail;
}

srtp_err_status_t cipher_set_iv(void* state, std::uint8_t* iv, srtp_cipher_direction_t) {
    auto& cipher = *static_cast<CounterMode*>(state);
    std::array<std::uint8_t, block_bytes> counter;
    for (std::size_t n = 0; n < block_bytes; ++n)
        counter[n] = cipher.salt[n] ^ iv[n];
    const int done = EVP_EncryptInit_ex2(cipher.context, nullptr, nullptr, counter.data(), nullptr);
    return done == 1 ? srtp_err_status_ok : srtp_err_status_cipher_fail;
}

srtp_err_status_t cipher_apply(void* state, std::uint8_t* bytes, unsigned int* size_bytes) {
    int written = 0;
    const int done = EVP_EncryptUpdate(static_cast<CounterMode*>(state)->context, bytes, &written, bytes,
                                       static_cast<int>(*size_bytes));
    *size_bytes = static_cast<unsigned int>(written);
    return done == 1 ? srtp_err_status_ok : srtp_err_status_cipher_fail;
}

// RFC 3711 B.2 and RFC 6188 7.1 and 7.2: keystreams over 48 bytes of zeros, with the salt in the key.
constexpr std::uint8_t key_128[] = {0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7,
                                    0x15, 0x88, 0x09, 0xcf, 0x4f, 0x3c, 0xf0, 0xf1, 0xf2, 0xf3,
                                    0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd};
constexpr std::uint8_t stream_128[] = {
    0xe0, 0x3e, 0xad, 0x09, 0x35, 0xc9, 0x5e, 0x80, 0xe1, 0x66, 0xb1, 0x6d, 0xd9, 0x2b, 0x4e, 0xb4,
    0xd2, 0x35, 0x13, 0x16, 0x2b, 0x02, 0xd0, 0xf7, 0x2a, 0x43, 0xa2, 0xfe, 0x4a, 0x5f, 0x97, 0xab,
    0x41, 0xe9, 0x5b, 0x3b, 0xb0, 0xa2, 0xe8, 0xdd, 0x47, 0x79, 0x01, 0xe4, 0xfc, 0xa8, 0x94, 0xc0};
constexpr std::uint8_t key_256[] = {0x57, 0xf8, 0x2f, 0xe3, 0x61, 0x3f, 0xd1, 0x70, 0xa8, 0x5e, 0xc9, 0x3c,
                                    0x40, 0xb1, 0xf0, 0x92, 0x2e, 0xc4, 0xcb, 0x0d, 0xc0, 0x25, 0xb5, 0x82,
                                    0x72, 0x14, 0x7c, 0xc4, 0x38, 0x94, 0x4a, 0x98, 0xf0, 0xf1, 0xf2, 0xf3,
                                    0xf4, 0xf5, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0xfd};
constexpr std::uint8_t stream_256[] = {
    0x92, 0xbd, 0xd2, 0x8a, 0x93, 0xc3, 0xf5, 0x25, 0x11, 0xc6, 0x77, 0xd0, 0x8b, 0x55, 0x15, 0xa4,
    0x9d, 0xa7, 0x1b, 0x23, 0x78, 0xa8, 0x54, 0xf6, 0x70, 0x50, 0x75, 0x6d, 0xed, 0x16, 0x5b, 0xac,
    0x63, 0xc4, 0x86, 0x8b, 0x70, 0x96, 0xd8, 0x84, 0x21, 0xb5, 0x63, 0xb8, 0xc9, 0x4c, 0x9a, 0x31};
constexpr std::uint8_t zeros[48] = {};
std::uint8_t zero_iv[block_bytes] = {};  // The library's own type wants it writable, and does not write.

const srtp_cipher_test_case_t test_128{sizeof(key_128), key_128, zero_iv, 48, zeros,  48,
                                       stream_128,      0,       nullptr, 0,  nullptr};
const srtp_cipher_test_case_t test_256{sizeof(key_256), key_256, zero_iv, 48, zeros,  48,
                                       stream_256,      0,       nullptr, 0,  nullptr};

const srtp_cipher_type_t counter_mode_128{cipher_alloc,  cipher_dealloc,  cipher_init,
                                          nullptr,       cipher_apply,    cipher_apply,
                                          cipher_set_iv, nullptr,         "AES-128 counter mode of OpenSSL",
                                          &test_128,     SRTP_AES_ICM_128};
const srtp_cipher_type_t counter_mode_256{cipher_alloc,  cipher_dealloc,  cipher_init,
                                          nullptr,       cipher_apply,    cipher_apply,
                                          cipher_set_iv, nullptr,         "AES-256 counter mode of OpenSSL",
                                          &test_256,     SRTP_AES_ICM_256};

/// HMAC (RFC 2104) with SHA-1, its two keyed beginnings computed with the key.
struct Hmac final {
    ~Hmac() {
        OPENSSL_cleanse(&inner, sizeof inner);
        OPENSSL_cleanse(&outer, sizeof outer);
    }

    srtp_auth_t base{};
    SHA_CTX inner{}, outer{}, running{};
};

extern const srtp_auth_type_t hmac_sha1;

srtp_err_status_t auth_alloc(srtp_auth_pointer_t* made, int key_bytes, int tag_bytes) {
    if (key_bytes > SHA_DIGEST_LENGTH || tag_bytes > SHA_DIGEST_LENGTH) return srtp_err_status_bad_param;
    auto* hmac = new (std::nothrow) Hmac;
    if (hmac == nullptr) return srtp_err_status_alloc_fail;
    hmac->base.type = &hmac_sha1;
    hmac->base.state = hmac;
    hmac->base.key_len = key_bytes;
    hmac->base.out_len = tag_bytes;
    *made = &hmac->base;
    return srtp_err_status_ok;
}

srtp_err_status_t auth_dealloc(srtp_auth_pointer_t auth) {
    delete static_cast<Hmac*>(auth->state);
    return srtp_err_status_ok;
}

void begin_keyed(SHA_CTX& hash, std::span<const std::uint8_t> key, std::uint8_t pad) {
    std::array<std::uint8_t, SHA_CBLOCK> block;
    block.fill(pad);
    for (std::size_t n = 0; n < key.size(); ++n)
        block[n] ^= key[n];
    SHA1_Init(&hash);
    SHA1_Update(&hash, block.data(), block.size());
    OPENSSL_cleanse(block.data(), block.size());
}

srtp_err_status_t auth_init(void* state, const std::uint8_t* key, int key_bytes) {
    if (key_bytes < 0 || key_bytes > SHA_CBLOCK) return srtp_err_status_bad_param;
    auto& hmac = *static_cast<Hmac*>(state);
    const std::span bytes(key, static_cast<std::size_t>(key_bytes));
    begin_keyed(hmac.inner, bytes, 0x36);
    begin_keyed(hmac.outer, bytes, 0x5c);
    hmac.running = hmac.inner;
    return srtp_err_status_ok;
}

srtp_err_status_t auth_start(void* state) {
    auto& hmac = *static_cast<Hmac*>(state);
    hmac.running = hmac.inner;
    return srtp_err_status_ok;
}

srtp_err_status_t auth_update(void* state, const std::uint8_t* bytes, int size_bytes) {
    SHA1_Update(&static_cast<Hmac*>(state)->running, bytes, static_cast<std::size_t>(size_bytes));
    return srtp_err_status_ok;
}

srtp_err_status_t auth_compute(void* state, const std::uint8_t* bytes, int size_bytes, int tag_bytes,
                               std::uint8_t* tag) {
    if (tag_bytes < 0 || tag_bytes > SHA_DIGEST_LENGTH) return srtp_err_status_bad_param;
    auto& hmac = *static_cast<Hmac*>(state);
    std::array<std::uint8_t, SHA_DIGEST_LENGTH> digest;
    SHA1_Update(&hmac.running, bytes, static_cast<std::size_t>(size_bytes));
    SHA1_Final(digest.data(), &hmac.running);
    SHA_CTX outer = hmac.outer;
    SHA1_Update(&outer, digest.data(), digest.size());
    SHA1_Final(digest.data(), &outer);
    std::copy_n(digest.begin(), tag_bytes, tag);
    return srtp_err_status_ok;
}

// RFC 2202 3, test case 1.
constexpr std::uint8_t hmac_key[] = {0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b,
                                     0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b, 0x0b};
constexpr std::uint8_t hmac_data[] = {'H', 'i', ' ', 'T', 'h', 'e', 'r', 'e'};
constexpr std::uint8_t hmac_tag[] = {0xb6, 0x17, 0x31, 0x86, 0x55, 0x05, 0x72, 0x64, 0xe2, 0x8b,
                                     0xc0, 0xb6, 0xfb, 0x37, 0x8c, 0x8e, 0xf1, 0x46, 0xbe, 0x00};
const srtp_auth_test_case_t hmac_test{
    sizeof(hmac_key), hmac_key, sizeof(hmac_data), hmac_data, sizeof(hmac_tag), hmac_tag, nullptr};

const srtp_auth_type_t hmac_sha1{
    auth_alloc, auth_dealloc,  auth_init, auth_compute, auth_update, auth_start, "HMAC-SHA1 over OpenSSL",
    &hmac_test, SRTP_HMAC_SHA1};

}  // namespace

bool use_openssl_for_srtp() {
    return srtp_replace_cipher_type(&counter_mode_128, SRTP_AES_ICM_128) == srtp_err_status_ok &&
           srtp_replace_cipher_type(&counter_mode_256, SRTP_AES_ICM_256) == srtp_err_status_ok &&
           srtp_replace_auth_type(&hmac_sha1, SRTP_HMAC_SHA1) == srtp_err_status_ok;
}

}  // namespace trunkline::engine

#else

namespace trunkline::engine {

bool use_openssl_for_srtp() {
    return false;
}

}  // namespace trunkline::engine

#endif
