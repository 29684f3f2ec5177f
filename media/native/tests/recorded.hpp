#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace trunkline::tests {

/// A path that no other test has, removed with what lies there.
class ScratchFile {
  public:
    explicit ScratchFile(const std::string& name)
        : path_(std::filesystem::temp_directory_path() /
                ("engine-" + std::to_string(getpid()) + "-" + name)) {}
    ScratchFile(const ScratchFile&) = delete;
    ScratchFile& operator=(const ScratchFile&) = delete;
    ~ScratchFile() { std::filesystem::remove(path_); }

    std::string path() const { return path_.string(); }

    std::string bytes() const {
        std::ifstream in(path_, std::ios::binary);
        return {std::istreambuf_iterator<char>(in), {}};
    }

  private:
    std::filesystem::path path_;
};

inline std::uint64_t number_at(const std::string& bytes, std::size_t at, std::size_t size) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, size);
    return value;
}

/// A WAV file as a player sees it that believes the header.
struct Played {
    std::uint32_t format = 0, rate_hz = 0, unit_bytes = 0;
    std::string data;
    std::vector<std::vector<std::int16_t>> channels;
};

inline Played play_wav(const std::string& bytes) {
    if (bytes.substr(0, 4) != "RIFF" || bytes.substr(8, 4) != "WAVE") throw std::runtime_error("no WAV file");
    if (number_at(bytes, 4, 4) + 8 > bytes.size())
        throw std::runtime_error("the file is shorter than it says");
    Played played;
    for (std::size_t at = 12; at + 8 <= bytes.size();) {
        const std::string name = bytes.substr(at, 4);
        const auto size = static_cast<std::size_t>(number_at(bytes, at + 4, 4));
        at += 8;
        if (name == "fmt ") {
            played.format = static_cast<std::uint32_t>(number_at(bytes, at, 2));
            played.channels.resize(number_at(bytes, at + 2, 2));
            played.rate_hz = static_cast<std::uint32_t>(number_at(bytes, at + 4, 4));
            played.unit_bytes = static_cast<std::uint32_t>(number_at(bytes, at + 12, 2));
        }
        if (name == "data") played.data = bytes.substr(at, size);
        at += size;
    }
    for (std::size_t n = 0; played.format == 1 && 2 * n + 1 < played.data.size(); ++n) {
        const auto sample = static_cast<std::int16_t>(number_at(played.data, 2 * n, 2));
        played.channels[n % played.channels.size()].push_back(sample);
    }
    return played;
}

}  // namespace trunkline::tests
