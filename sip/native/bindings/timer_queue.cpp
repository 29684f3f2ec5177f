#include "timer_queue.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "source_guard.hpp"

namespace trunkline::signalling {

namespace {

constexpr double ns_per_s = 1e9;
/// Thirty years: no nanoseconds of a longer delay could be added to a time.
constexpr double longest_s = 1e9;
constexpr int place_bits = 32;

}  // namespace

std::uint64_t PythonTimerQueue::arm(double now_s, double delay_s, nb::object callback, std::uint8_t event) {
    std::uint32_t place = 0;
    if (free_.empty()) {
        place = static_cast<std::uint32_t>(places_.size());
        places_.emplace_back();
    } else {
        place = free_.back();
        free_.pop_back();
    }
    Place& taken = places_[place];
    taken.callback = std::move(callback);
    taken.timer = queue_.arm(to_ns(now_s), to_ns(std::min(delay_s, longest_s)), place, event);
    ++taken.turn;
    return std::uint64_t{taken.turn} << place_bits | place;
}

void PythonTimerQueue::disarm(std::uint64_t number) {
    const auto place = static_cast<std::uint32_t>(number);
    if (place >= places_.size() || places_[place].turn != number >> place_bits) return;
    if (places_[place].timer == TimerQueue::none) return;
    queue_.disarm(places_[place].timer);
    leave(place);
}

nb::object PythonTimerQueue::take_due(double now_s) {
    const auto fired = queue_.take_due(to_ns(now_s));
    if (!fired) return nb::none();
    return nb::make_tuple(leave(static_cast<std::uint32_t>(fired->owner)), fired->event);
}

double PythonTimerQueue::due_s() const {
    const auto due_ns = queue_.next_due_ns();
    return due_ns ? static_cast<double>(*due_ns) / ns_per_s : std::numeric_limits<double>::infinity();
}

nb::object PythonTimerQueue::leave(std::uint32_t place) {
    places_[place].timer = TimerQueue::none;
    free_.push_back(place);
    return std::move(places_[place].callback);
}

// For the garbage collector: a callback usually is a method of what holds the queue.

int PythonTimerQueue::traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    if (!nb::inst_ready(self)) return 0;
    for (const Place& place : nb::inst_ptr<PythonTimerQueue>(self)->places_)
        Py_VISIT(place.callback.ptr());
    return 0;
}

int PythonTimerQueue::clear(PyObject* self) {
    PythonTimerQueue& queue = *nb::inst_ptr<PythonTimerQueue>(self);
    const PythonTimerQueue dropped = std::exchange(queue, {});
    return 0;
}

void PythonTimerQueue::define(nb::module_& module) {
    static PyType_Slot slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(&PythonTimerQueue::traverse)},
                                  {Py_tp_clear, reinterpret_cast<void*>(&PythonTimerQueue::clear)},
                                  {0, nullptr}};
    nb::class_<PythonTimerQueue>(module, "TimerQueue", nb::type_slots(slots))
        .def(nb::init<>())
        .def("arm", &PythonTimerQueue::arm)
        .def("disarm", &PythonTimerQueue::disarm)
        .def("take_due", &PythonTimerQueue::take_due)
        .def("__len__", &PythonTimerQueue::size)
        .def_prop_ro("due_s", &PythonTimerQueue::due_s);
}

}  // namespace trunkline::signalling
