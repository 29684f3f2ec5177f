#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace trunkline::signalling {

/// What a transaction does when an event has found its rule; `engine.cpp` does it.
enum class Action : std::uint8_t {
    nothing,
    /// Pass the message on to the user.
    deliver,
    /// Send what was sent last once more.
    repeat,
    /// End; the user is not told.
    end,
    /// End for want of a final response.
    time_out,
    /// End because the request could not be sent.
    fail,

    // Of client transactions.
    /// Repeat the INVITE, and wait twice as long for the next time (timer A).
    repeat_invite,
    /// Repeat no more.
    abandon,
    /// The first 2xx: deliver it, and further ones until timer M.
    accept,
    /// A refusal: acknowledge and deliver it.
    acknowledge,
    /// Repeat the request, and wait twice as long but T2 at most for the next time (timer E).
    repeat_request,
    /// Repeat the request every T2: the server has it.
    repeat_slowly,
    /// A final response: deliver it, and absorb its repetitions until timer K.
    finish,

    // Of server transactions.
    /// Send 100 unless the user has sent a response.
    try_later,
    /// A repeated INVITE gets the last response, or 100 if there is none yet.
    repeat_or_try,
    /// Send a provisional response and keep it for repetitions.
    send,
    /// Send a 2xx, which the user repeats.
    send_success,
    /// Send a repeated 2xx.
    send_again,
    /// Send a refusal, and repeat it until its ACK.
    refuse,
    /// Repeat the refusal (timer G).
    repeat_refusal,
    /// The ACK of a refusal: absorb late repetitions until timer I.
    confirm,
    /// Send a final response, and answer repetitions with it until timer J.
    answer,
};

/// What follows an event: the next state, and what is done.
struct Step {
    std::uint8_t next = 0;
    Action action = Action::nothing;
    bool ruled = false;
};

template <class Enum>
constexpr std::size_t count_of = static_cast<std::size_t>(Enum::count);

/// One rule of a machine.
template <class State, class Event>
struct Rule {
    State state;
    Event event;
    State next;
    Action action;
};

/// A set of states or events.
template <class Enum>
class Set {
  public:
    constexpr Set(std::initializer_list<Enum> members) {
        for (const Enum member : members)
            bits_ |= 1U << static_cast<unsigned>(member);
    }

    static constexpr Set all() {
        Set every{};
        every.bits_ = (1U << count_of<Enum>)-1U;
        return every;
    }

    constexpr Set without(Set others) const {
        Set left = *this;
        left.bits_ &= ~others.bits_;
        return left;
    }

    constexpr bool has(std::size_t member) const { return (bits_ >> member & 1U) != 0; }

  private:
    std::uint32_t bits_ = 0;
};

/// Every pair of these states and events is ignored on purpose.
template <class State, class Event>
struct Ignored {
    Set<State> states;
    Set<Event> events;
};

/// A machine as a table from state and event to next state and action.
template <class State, class Event>
class Table {
  public:
    constexpr Table(std::initializer_list<Rule<State, Event>> rules,
                    std::initializer_list<Ignored<State, Event>> ignored) {
        for (const Rule<State, Event>& rule : rules) {
            const auto state = static_cast<std::size_t>(rule.state);
            const auto event = static_cast<std::size_t>(rule.event);
            steps_[state][event] = {static_cast<std::uint8_t>(rule.next), rule.action, true};
            ++named_[state][event];
        }
        for (const Ignored<State, Event>& pairs : ignored) {
            for (std::size_t state = 0; state < count_of<State>; ++state) {
                for (std::size_t event = 0; event < count_of<Event>; ++event) {
                    if (pairs.states.has(state) && pairs.events.has(event)) ++named_[state][event];
                }
            }
        }
    }

    constexpr Step step(std::uint8_t state, std::uint8_t event) const {
        return state < count_of<State> && event < count_of<Event> ? steps_[state][event] : Step{};
    }

    /// True if every pair of state and event has one rule, or is ignored on purpose.
    constexpr bool is_complete() const {
        for (const auto& row : named_) {
            for (const std::uint8_t times : row) {
                if (times != 1) return false;
            }
        }
        return true;
    }

    /// True if no rule leads back to an earlier state.
    constexpr bool goes_forward() const {
        for (std::size_t state = 0; state < count_of<State>; ++state) {
            for (const Step& step : steps_[state]) {
                if (step.ruled && step.next < state) return false;
            }
        }
        return true;
    }

    /// True if nothing happens in a state any more.
    constexpr bool is_over(State state) const {
        for (const Step& step : steps_[static_cast<std::size_t>(state)]) {
            if (step.ruled) return false;
        }
        return true;
    }

  private:
    std::array<std::array<Step, count_of<Event>>, count_of<State>> steps_{};
    std::array<std::array<std::uint8_t, count_of<Event>>, count_of<State>> named_{};
};

}  // namespace trunkline::signalling
