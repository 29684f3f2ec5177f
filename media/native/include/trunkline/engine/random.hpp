#pragma once

#include <sys/random.h>

#include <cerrno>
#include <system_error>

namespace trunkline::engine {

/// A value nobody can guess. Control thread only.
template <typename Value>
Value random_value() {
    Value value{};
    if (getrandom(&value, sizeof value, 0) != static_cast<ssize_t>(sizeof value)) {
        throw std::system_error(errno, std::generic_category(), "getrandom");
    }
    return value;
}

}  // namespace trunkline::engine
