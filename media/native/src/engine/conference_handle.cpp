// The control thread's hold on conferences: a member is added and taken away on two threads, its stream's and
// the conference's, which share nothing but the line between them.

#include "trunkline/engine/conference_handle.hpp"

#include <algorithm>
#include <stdexcept>

#include "trunkline/engine/engine.hpp"

namespace trunkline::engine {

ConferenceHandle::ConferenceHandle(std::shared_ptr<Engine> engine, Shard& shard, Conference* conference,
                                   std::uint64_t id, std::uint32_t rate_hz)
    : engine_(std::move(engine)), shard_(&shard), conference_(conference), id_(id), rate_hz_(rate_hz) {}

bool ConferenceHandle::add(const std::shared_ptr<StreamHandle>& stream, const Participation& participation) {
    if (!open() || !stream->open()) return true;
    forget_closed();
    if (members_.contains(stream->id())) throw std::invalid_argument("the stream is a member already");
    const auto slot = free_slot();
    if (!slot) return false;
    auto member = std::make_unique<ConferenceMember>();
    member->role = role_of(participation);
    member->stream = stream->id();
    member->slot = *slot;
    member->line = std::make_shared<ConferenceLine>(rate_hz_);
    const std::shared_ptr<ConferenceLine> line = member->line;
    auto ear = std::make_unique<ConferenceEar>(line);
    members_.emplace(stream->id(), Member{*slot, line, stream, ear.get()});
    order([member = std::move(member)](Conference& conference, std::int64_t now_ns) mutable {
        conference.add(member.release(), now_ns);
    });
    stream->use(Use::listener);
    stream->use(Use::source);
    // The ear keeps the line alive as long as the stream has both.
    stream->order([ear = std::move(ear), mouth = line.get()](Stream& attached, std::int64_t now_ns) mutable {
        attached.attach_listener(ear.release(), now_ns);
        attached.attach_source(mouth, now_ns);
    });
    return true;
}

void ConferenceHandle::change(std::uint64_t stream, const Participation& participation) {
    if (!open()) return;
    forget_closed();
    if (!members_.contains(stream)) throw std::invalid_argument("the stream is no member");
    order([stream, role = role_of(participation)](Conference& conference,
                                                  std::int64_t) { conference.change(stream, role); },
          false);
}

void ConferenceHandle::remove(std::uint64_t stream) {
    const auto found = members_.find(stream);
    if (found == members_.end()) return;
    const Member member = std::move(found->second);
    members_.erase(found);
    order([stream](Conference& conference, std::int64_t now_ns) { conference.remove(stream, now_ns); });
    const auto handle = member.stream.lock();
    if (handle == nullptr || !handle->open()) return;
    handle->order([ear = member.ear](Stream& attached, std::int64_t now_ns) {
        // The mouth first: with the ear goes what keeps the line alive.
        attached.attach_source(nullptr, now_ns);
        attached.detach_listener(ear, now_ns);
    });
    handle->use(Use::source, false);
    handle->use(Use::listener, false);
}

std::vector<std::pair<std::uint64_t, std::uint32_t>> ConferenceHandle::levels() const {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> levels;
    levels.reserve(members_.size());
    for (const auto& [stream, member] : members_) {
        levels.emplace_back(stream, member.line->level_dbov.get());
    }
    return levels;
}

void ConferenceHandle::play(std::unique_ptr<graph::Playback> playback) {
    order([playback = std::move(playback)](Conference& conference, std::int64_t now_ns) mutable {
        conference.play(playback.release(), now_ns);
    });
}

void ConferenceHandle::pause_playback() {
    order([](Conference& conference, std::int64_t) { conference.pause_playback(); });
}

void ConferenceHandle::resume_playback() {
    order([](Conference& conference, std::int64_t) { conference.resume_playback(); });
}

void ConferenceHandle::stop_playback() {
    order([](Conference& conference, std::int64_t) { conference.stop_playback(); });
}

int ConferenceHandle::start_recording(std::uint64_t recording_id, const std::string& path,
                                      const RecordingOptions& options) {
    if (!open()) return 0;
    int error = 0;
    auto recorder = engine_->make_recorder(recording_id, path, options, error);
    if (recorder == nullptr) return error;
    order([recorder = std::move(recorder)](Conference& conference, std::int64_t now_ns) mutable {
        conference.attach_recorder(recorder.release(), now_ns);
    });
    return 0;
}

void ConferenceHandle::pause_recording(bool paused) {
    order(
        [paused](Conference& conference, std::int64_t now_ns) { conference.pause_recorder(paused, now_ns); });
}

void ConferenceHandle::stop_recording() {
    order([](Conference& conference, std::int64_t now_ns) { conference.detach_recorder(now_ns); });
}

void ConferenceHandle::close() {
    if (!open()) return;
    while (!members_.empty()) {
        remove(members_.begin()->first);
    }
    order([](Conference& conference, std::int64_t now_ns) { conference.shut(now_ns); });
    conference_ = nullptr;
    engine_->closed(*this);
}

/// Throws `std::invalid_argument` when a whisper is meant for somebody who is no member.
ConferenceRole ConferenceHandle::role_of(const Participation& participation) const {
    ConferenceRole role;
    role.heard = !participation.listen_only && !participation.muted;
    role.whispers = participation.whisper_to.has_value();
    if (!role.whispers) return role;
    for (const std::uint64_t stream : *participation.whisper_to) {
        const auto found = members_.find(stream);
        if (found == members_.end())
            throw std::invalid_argument("a whisper is for somebody who is no member");
        role.whisper_to.set(found->second.slot);
    }
    return role;
}

/// Members whose streams were closed have left by themselves.
void ConferenceHandle::forget_closed() {
    std::vector<std::uint64_t> closed;
    for (const auto& [id, member] : members_) {
        const auto stream = member.stream.lock();
        if (stream == nullptr || !stream->open()) closed.push_back(id);
    }
    for (const std::uint64_t id : closed) {
        remove(id);
    }
}

std::optional<std::size_t> ConferenceHandle::free_slot() const {
    ConferenceRole::Slots taken;
    for (const auto& [id, member] : members_) {
        taken.set(member.slot);
    }
    for (std::size_t slot = 0; slot < taken.size(); ++slot) {
        if (!taken.test(slot)) return slot;
    }
    return std::nullopt;
}

}  // namespace trunkline::engine
