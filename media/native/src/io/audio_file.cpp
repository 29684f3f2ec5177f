#include "trunkline/io/audio_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "trunkline/io/ogg_opus_file.hpp"
#include "trunkline/io/wav_file.hpp"

namespace trunkline::io {

bool supported(Encoding encoding) {
    return encoding != Encoding::ogg_opus || OggOpusFile::available();
}

int create_file(const std::string& path) {
    // Not to wait for a reader, should the path be a pipe.
    constexpr int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK;
    const int descriptor = open(path.c_str(), flags, 0640);
    return descriptor < 0 ? -errno : descriptor;
}

std::unique_ptr<AudioFile> make_audio_file(int descriptor, const AudioLayout& layout, std::uint32_t serial) {
    if (layout.encoding == Encoding::ogg_opus) {
        return std::make_unique<OggOpusFile>(descriptor, layout, serial);
    }
    return std::make_unique<WavFile>(descriptor, layout);
}

int write_at(int descriptor, std::span<const std::uint8_t> bytes, std::uint64_t offset,
             std::uint64_t& written) {
    while (!bytes.empty()) {
        const ssize_t taken = pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (taken < 0 && errno == EINTR) continue;
        if (taken < 0) return errno;
        if (taken == 0) return ENOSPC;
        bytes = bytes.subspan(static_cast<std::size_t>(taken));
        offset += static_cast<std::uint64_t>(taken);
        written += static_cast<std::uint64_t>(taken);
    }
    return 0;
}

}  // namespace trunkline::io
