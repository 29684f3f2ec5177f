#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

namespace trunkline::util {

/// A bounded queue of byte records, each with a 64-bit tag, between one writing and one reading thread.
class ByteRing {
  public:
    /// One record; the bytes stay valid until `release`.
    struct Record {
        std::uint64_t tag = 0;
        std::span<const std::uint8_t> bytes;
    };

    /// Make a ring of `capacity_bytes`, a power of two. Memory is touched only as it is used.
    explicit ByteRing(std::size_t capacity_bytes);

    /// Room for a record of `size` bytes, or nothing when the ring is full. Writing thread only.
    std::uint8_t* reserve(std::size_t size);

    /// Hand over the record last reserved. Writing thread only.
    void commit(std::uint64_t tag, std::size_t size);

    /// The oldest record, or nothing. Reading thread only.
    std::optional<Record> front();

    /// Give the oldest record's room back. Reading thread only.
    void release();

  private:
    struct Prefix {
        std::uint64_t tag;
        std::uint32_t size_bytes;
        std::uint32_t is_skip;  ///< The rest of the ring is unused; go on at its start.
    };

    static std::size_t footprint(std::size_t size) {
        return sizeof(Prefix) + ((size + 15) & ~std::size_t{15});
    }

    std::size_t capacity_;
    std::unique_ptr<std::uint8_t[]> bytes_;
    alignas(64) std::atomic<std::size_t> head_ = 0;  ///< Where reading goes on; counts up for ever.
    alignas(64) std::atomic<std::size_t> tail_ = 0;  ///< Where writing goes on.
    std::size_t reserved_at_ = 0;                    ///< Writer's own.
};

}  // namespace trunkline::util
