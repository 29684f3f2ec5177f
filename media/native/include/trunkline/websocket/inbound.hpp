#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "trunkline/websocket/audio_event.hpp"
#include "trunkline/websocket/frame.hpp"
#include "trunkline/websocket/read_budget.hpp"

namespace trunkline::websocket {

/// Kind of a message to whoever understands the far end's protocol.
enum class MessageKind : std::uint8_t {
    text = 1,
    binary = 2,
    pong = 3,       ///< The first one after a ping.
    close = 4,      ///< code: that of the close frame, 0 for none. bytes: its reason. Nothing follows it.
    violation = 5,  ///< code: of the close frame that answers it. bytes: what was wrong. Nothing follows it.
    abuse = 6,      ///< Likewise, of frames that are valid.
    stalled = 7,    ///< The far end does not read, and too much waits for it.
    lost = 8,       ///< The connection has ended. The last message.
};

/// Receiver of what comes from a far end.
class InboundListener {
  public:
    /// Play audio, coded in base64 or not. False if it is none; then it becomes a message.
    virtual bool audio(std::span<const std::uint8_t> bytes, bool base64) = 0;

    virtual void message(MessageKind kind, std::uint16_t code, std::span<const std::uint8_t> bytes) = 0;

    /// A ping to answer.
    virtual void ping(std::span<const std::uint8_t> payload) = 0;

  protected:
    ~InboundListener() = default;
};

/// Reading end of a WebSocket client: frames, messages, and audio among them. No I/O and no clock.
///
/// Audio that can be told without understanding the message goes to the listener at once. Any other must be
/// `handled` by whoever gets it; audio behind it waits for that, and so does more than a few messages. Thus
/// a mark is set behind the audio before it, and in front of the audio after it.
class Inbound {
  public:
    /// Messages and bytes of them that may be on their way at the same time.
    static constexpr std::size_t max_unhandled = 32;
    static constexpr std::size_t max_unhandled_bytes = 256 * 1024;

    Inbound(std::size_t max_message_bytes, InboundListener& listener)
        : max_message_bytes_(max_message_bytes), listener_(listener) {}
    Inbound(const Inbound&) = delete;
    Inbound& operator=(const Inbound&) = delete;

    /// Take bytes that were read.
    void receive(std::span<const std::uint8_t> bytes, std::int64_t now_ns);

    /// Count records of TLS that were read, which are work whatever is in them.
    void count_records(std::size_t count, std::int64_t now_ns) { budget_.records(count, now_ns); }

    /// True when nothing that comes counts any more: a close frame has come, or what is none of the protocol.
    bool finished() const { return finished_; }

    /// True while more should be read.
    bool wants_more() const { return !held_ && !budget_.paused(); }

    /// One message was handled, which took so long.
    void handled(std::int64_t spent_ns, std::int64_t now_ns);

    /// True while reading pauses: `resume` must be called now and then.
    bool paused() const { return budget_.paused(); }
    void resume(std::int64_t now_ns);

    /// Take text frames of this beginning and end, with base64 between them, for audio; binary ones if both
    /// are empty. The old ones are given back in exchange.
    void learn(std::string& before, std::string& after);

    /// Take messages of this description for audio; the old one is given back in exchange.
    void learn(std::unique_ptr<AudioEvent>& event);

    void unlearn() { learned_ = Learned::nothing; }

    /// True while audio is told by the description of its messages.
    bool knows_event() const { return learned_ == Learned::event; }

    /// Count work that a piece of audio makes, as so many bytes more.
    void count_work(std::size_t size_bytes, std::int64_t now_ns) { budget_.work(size_bytes, now_ns); }

    /// Begin or stop to play audio at once.
    void play(bool active) { plays_ = active; }

    /// Report the next pong.
    void expect_pong() { expects_pong_ = true; }

    /// Our close frame was sent: wait for the answer to it, without limits, and drop all else.
    void close(std::int64_t now_ns);

  private:
    /// How audio can be told.
    enum class Learned : std::uint8_t { nothing, surroundings, event };

    struct Audio {
        std::span<const std::uint8_t> bytes;
        bool base64 = false;
    };

    /// The frame at the front of what was read.
    struct Front {
        enum class State : std::uint8_t { incomplete, complete, invalid } state = State::incomplete;
        std::uint16_t code = 0;        ///< Of what is invalid about it,
        const char* reason = nullptr;  ///< in words.
        bool final = false;
        Opcode opcode = Opcode::continuation;
        std::span<const std::uint8_t> payload;
        std::size_t size_bytes = 0;
        std::optional<Audio> audio;  ///< That can be played without understanding the frame.
    };

    static Front invalid(std::uint16_t code, const char* reason);
    Front front(std::span<const std::uint8_t> bytes) const;
    const char* fault(const FrameHeader& header) const;
    bool too_long(const FrameHeader& header) const;
    std::size_t work(std::span<const std::uint8_t> bytes, std::int64_t now_ns);
    void work_on(std::int64_t now_ns);
    bool may_take(Front& front);
    std::optional<Audio> audio_in(const Front& front) const;
    bool matches(std::span<const std::uint8_t> text) const;
    void take(const Front& front);
    void take_data(const Front& front);
    void take_close(std::span<const std::uint8_t> payload);
    void pass_on(MessageKind kind, std::span<const std::uint8_t> bytes);
    void finish(MessageKind kind, std::uint16_t code, std::span<const std::uint8_t> bytes);
    std::int64_t cost_of(std::span<const std::uint8_t> bytes) const;

    std::size_t max_message_bytes_;
    InboundListener& listener_;
    ReadBudget budget_;
    std::vector<std::uint8_t> pending_;  ///< Read and not handled, from `taken_` on.
    std::size_t taken_ = 0;
    std::vector<std::uint8_t> fragments_;
    Opcode fragments_kind_ = Opcode::continuation;  ///< That of the message in fragments, if there is one.
    std::string before_;
    std::string after_;
    std::unique_ptr<AudioEvent> event_;
    Learned learned_ = Learned::nothing;
    bool plays_ = false;
    bool expects_pong_ = false;
    bool held_ = false;       ///< The next frame waits until a message is handled.
    bool held_long_ = false;  ///< It is audio, and waits until all are.
    bool closing_ = false;    ///< Only the answer to our close frame counts.
    bool finished_ = false;
    std::size_t unhandled_ = 0;
    std::size_t unhandled_bytes_ = 0;
};

}  // namespace trunkline::websocket
