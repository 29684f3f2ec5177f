#include <doctest/doctest.h>

#include <filesystem>
#include <vector>

#include "driven.hpp"

using namespace trunkline;
using engine::EventKind;
using tests::Driven;
using tests::ms;
using tests::Peer;
using tests::towards;

TEST_CASE("a driven engine sends an hour of packets in the time that takes") {
    Driven driven;
    Peer peer;
    const auto stream = driven.media->open_stream(nullptr);
    stream->connect(towards(peer.udp_port()));
    const auto tap = stream->open_tap({graph::Encoding::l16, 8000}, false);
    driven.run_for(20 * ms);
    for (int frames = 0; frames < 50; ++frames) {
        std::size_t heard = 0;
        driven.run_for(3600 / 50 * 1000 * ms);
        while (peer.hears_nothing(0) == false)
            heard += !peer.hear_raw(0).empty();
        // The socket's buffer holds some of them.
        CHECK(heard > 100);
    }
    CHECK(stream->snapshot().packets_out == 3600 * 50 + 1);
    tap->close();
    stream->close();
}

TEST_CASE("a driven engine does nothing while its clock stands still") {
    Driven driven;
    Peer peer;
    const auto stream = driven.media->open_stream(nullptr);
    stream->connect(towards(peer.udp_port()));
    stream->set_media_timeout(500 * ms, 0);
    peer.send(stream->udp_port(), rtp::Header{.payload_type = 0, .sequence = 1, .timestamp = 160, .ssrc = 7},
              std::vector<std::uint8_t>(160, 0xff));
    CHECK(driven.events().empty());
    driven.run_for(0);
    CHECK(driven.events() == std::vector{EventKind::first_packet});
    driven.run_for(499 * ms);
    CHECK(driven.events().empty());
    driven.run_for(1000 * ms);
    CHECK(driven.events() == std::vector{EventKind::media_timeout});
    stream->close();
}

TEST_CASE("ports of a driven engine rest by its own clock") {
    Driven driven(4000 * ms);
    std::vector<std::shared_ptr<engine::StreamHandle>> streams;
    while (auto stream = driven.media->open_stream(nullptr))
        streams.push_back(stream);
    CHECK(streams.size() == 50);
    for (const auto& stream : streams)
        stream->close();
    driven.run_for(0);
    driven.events();
    driven.run_for(3999 * ms);
    CHECK(driven.media->open_stream(nullptr) == nullptr);
    driven.run_for(2 * ms);
    const auto stream = driven.media->open_stream(nullptr);
    REQUIRE(stream != nullptr);
    stream->close();
}

TEST_CASE("a driven engine completes its recordings when it is closed") {
    const auto path = std::filesystem::temp_directory_path() / "trunkline-driven.wav";
    {
        Driven driven;
        const auto stream = driven.media->open_stream(nullptr);
        stream->connect(towards(9));
        REQUIRE(stream->start_recording(driven.media->next_id(), path.string(), {}) == 0);
        driven.run_for(1000 * ms);
    }
    CHECK(std::filesystem::file_size(path) > 8000);
    std::filesystem::remove(path);
}

TEST_CASE("an engine with threads is not driven") {
    const auto media = engine::Engine::create(
        {"127.0.0.1", tests::first_port(), static_cast<std::uint16_t>(tests::first_port() + 99), 1, 0});
    CHECK_THROWS_AS(media->advance(1), std::logic_error);
    media->close();
}
