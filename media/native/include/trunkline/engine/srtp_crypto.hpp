#pragma once

namespace trunkline::engine {

/// Register the AES-CM and HMAC-SHA1 of OpenSSL with libsrtp2, through its interface; call once, after
/// it was set up. False without OpenSSL, or when an algorithm fails the library's own tests: it then goes on
/// with what it was built with.
///
/// Distributions build libsrtp2 over NSS, which makes and destroys an encryption context for each packet: 14
/// allocations, and locks. These enter the allocator only when a key is set, and take a tenth of the time.
bool use_openssl_for_srtp();

}  // namespace trunkline::engine
