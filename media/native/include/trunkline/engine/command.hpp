#pragma once

#include <cstdint>
#include <utility>

#include "trunkline/util/node.hpp"

namespace trunkline::engine {

/// An order from the control thread, run by the shard's thread between packets.
struct Command : util::Node {
    virtual void run(std::int64_t now_ns) = 0;
};

template <typename Action>
struct CommandOf final : Command {
    explicit CommandOf(Action&& action) : action_(std::move(action)) {}
    void run(std::int64_t now_ns) override { action_(now_ns); }

    Action action_;
};

/// Make a command of a callable that takes the time in nanoseconds. What it holds is destroyed by the control
/// thread, after it ran.
template <typename Action>
Command* make_command(Action action) {
    return new CommandOf<Action>(std::move(action));
}

}  // namespace trunkline::engine
