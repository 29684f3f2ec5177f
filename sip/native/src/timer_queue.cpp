#include "trunkline/signalling/timer_queue.hpp"

#include <algorithm>
#include <cassert>

namespace trunkline::signalling {

TimerQueue::Handle TimerQueue::arm(std::int64_t now_ns, std::int64_t delay_ns, std::uint64_t owner,
                                   std::uint8_t event) {
    const std::uint32_t place = line_of(std::max<std::int64_t>(delay_ns, 0));
    Line& line = lines_[place];
    Handle timer = none;
    if (free_.empty()) {
        timer = static_cast<Handle>(timers_.size());
        timers_.emplace_back();
    } else {
        timer = free_.back();
        free_.pop_back();
    }
    timers_[timer] = {now_ns + line.delay_ns, owner, ++order_, line.last, none, place, event};
    (line.last == none ? line.first : timers_[line.last].after) = timer;
    line.last = timer;
    ++size_;
    return timer;
}

void TimerQueue::disarm(Handle timer) {
    assert(timer != none && timer < timers_.size());
    const Timer& ended = timers_[timer];
    Line& line = lines_[ended.line];
    (ended.before == none ? line.first : timers_[ended.before].after) = ended.after;
    (ended.after == none ? line.last : timers_[ended.after].before) = ended.before;
    free_.push_back(timer);
    --size_;
}

std::optional<TimerQueue::Fired> TimerQueue::take_due(std::int64_t now_ns) {
    const Line* const line = first_due();
    if (line == nullptr || timers_[line->first].due_ns > now_ns) return std::nullopt;
    const Handle timer = line->first;
    const Fired fired{timers_[timer].owner, timers_[timer].event};
    disarm(timer);
    return fired;
}

std::optional<std::int64_t> TimerQueue::next_due_ns() const {
    const Line* const line = first_due();
    if (line == nullptr) return std::nullopt;
    return timers_[line->first].due_ns;
}

std::uint32_t TimerQueue::line_of(std::int64_t delay_ns) {
    std::size_t unused = lines_.size();
    for (std::size_t place = 0; place < lines_.size(); ++place) {
        if (lines_[place].delay_ns == delay_ns) return static_cast<std::uint32_t>(place);
        if (lines_[place].first == none) unused = place;
    }
    if (unused == lines_.size()) lines_.emplace_back();
    lines_[unused] = {delay_ns, none, none};
    return static_cast<std::uint32_t>(unused);
}

const TimerQueue::Line* TimerQueue::first_due() const {
    const Line* found = nullptr;
    for (const Line& line : lines_) {
        if (line.first == none) continue;
        if (found == nullptr) {
            found = &line;
            continue;
        }
        const Timer& timer = timers_[line.first];
        const Timer& best = timers_[found->first];
        if (timer.due_ns < best.due_ns || (timer.due_ns == best.due_ns && timer.order < best.order)) {
            found = &line;
        }
    }
    return found;
}

}  // namespace trunkline::signalling
