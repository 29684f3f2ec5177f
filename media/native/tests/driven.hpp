#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "peer.hpp"
#include "support.hpp"

namespace trunkline::tests {

/// An engine that runs when the test says so.
struct Driven {
    explicit Driven(std::int64_t quarantine_ns = 0, bool continuous = false)
        : media(engine::Engine::create({"127.0.0.1", first_port(),
                                        static_cast<std::uint16_t>(first_port() + 99), 1, quarantine_ns, true,
                                        continuous})) {
        run_until(now_ns);
    }
    ~Driven() { media->close(); }

    /// Let time pass, stopping wherever something is due.
    void run_until(std::int64_t until_ns) {
        for (;;) {
            const std::int64_t due_ns = media->advance(now_ns);
            if (due_ns <= now_ns) continue;
            if (due_ns > until_ns) break;
            now_ns = due_ns;
        }
        now_ns = until_ns;
        media->advance(now_ns);
    }

    void run_for(std::int64_t ns) { run_until(now_ns + ns); }

    std::vector<engine::EventKind> events() {
        std::vector<engine::EventKind> found;
        media->acknowledge();
        for (engine::Event event; media->next_event(event);)
            found.push_back(event.kind);
        return found;
    }

    std::shared_ptr<engine::Engine> media;
    std::int64_t now_ns = 1'000'000'000;
};

}  // namespace trunkline::tests
