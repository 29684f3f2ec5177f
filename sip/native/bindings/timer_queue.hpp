#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <vector>

#include "trunkline/signalling/timer_queue.hpp"

namespace trunkline::signalling {

namespace nb = nanobind;

/// A queue of timers for callers in Python: each calls back with its event, from the caller of `take_due`.
class PythonTimerQueue {
  public:
    /// Number of the timer; 0 is none.
    std::uint64_t arm(double now_s, double delay_s, nb::object callback, std::uint8_t event);
    /// Stop a timer; nothing when it has fired or was stopped before.
    void disarm(std::uint64_t number);
    /// The callback and the event of the timer that is due first, or None.
    nb::object take_due(double now_s);
    /// When a timer is due; infinite when none runs.
    double due_s() const;
    std::size_t size() const { return queue_.size(); }

    static void define(nb::module_& module);

  private:
    /// Place of a running timer. `turn` tells those apart that had the place one after the other.
    struct Place {
        nb::object callback;
        TimerQueue::Handle timer = TimerQueue::none;
        std::uint32_t turn = 0;
    };

    /// Free a place; its callback is handed over, since dropping it may run code that arms timers.
    nb::object leave(std::uint32_t place);
    static int traverse(PyObject* self, visitproc visit, void* arg);
    static int clear(PyObject* self);

    TimerQueue queue_;
    std::vector<Place> places_;
    std::vector<std::uint32_t> free_;
};

}  // namespace trunkline::signalling
