#pragma once

#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

namespace trunkline::fuzz {

/// Reads a fuzz input chunk by chunk; zeros after its end, so that every input means something.
class Input {
  public:
    Input(const std::uint8_t* data, std::size_t size) : bytes_(data, size) {}

    bool empty() const { return bytes_.empty(); }

    std::uint8_t byte() {
        if (bytes_.empty()) return 0;
        const std::uint8_t value = bytes_.front();
        bytes_ = bytes_.subspan(1);
        return value;
    }

    std::uint16_t word() { return static_cast<std::uint16_t>(byte() << 8 | byte()); }

    /// A copy on the heap of exactly this size, so that the sanitizer sees each byte read beyond it.
    std::vector<std::uint8_t> take(std::size_t size) {
        size = std::min(size, bytes_.size());
        std::vector<std::uint8_t> taken(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(size));
        bytes_ = bytes_.subspan(size);
        return taken;
    }

    std::vector<std::uint8_t> rest() { return take(bytes_.size()); }

  private:
    std::span<const std::uint8_t> bytes_;
};

/// Abort, so that the input is kept, when a promise is broken.
inline void require(bool holds) {
    if (!holds) std::abort();
}

}  // namespace trunkline::fuzz
