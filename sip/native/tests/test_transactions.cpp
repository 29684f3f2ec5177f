#include <doctest/doctest.h>

#include <random>
#include <string>

#include "driver.hpp"
#include "trunkline/signalling/transactions.hpp"

using namespace trunkline::signalling;

namespace {

const std::string invite =
    "INVITE sip:b@h SIP/2.0\r\nVia: SIP/2.0/UDP a;branch=z9hG4bKx\r\nTo: <sip:b@h>\r\nFrom: "
    "<sip:a@h>;tag=1\r\n"
    "Call-ID: c\r\nCSeq: 7 INVITE\r\nContent-Length: 0\r\n\r\n";

template <class State, class Event>
struct Small {
    enum class S : std::uint8_t { one, two, count };
    enum class E : std::uint8_t { go, stay, count };
};
using S = Small<int, int>::S;
using E = Small<int, int>::E;

}  // namespace

TEST_CASE("tables: every machine has a rule or a reason for every pair, goes forward and ends") {
    CHECK(invite_client::table.is_complete());
    CHECK(request_client::table.is_complete());
    CHECK(invite_server::table.is_complete());
    CHECK(request_server::table.is_complete());
    CHECK(invite_client::table.goes_forward());
    CHECK(request_client::table.goes_forward());
    CHECK(invite_server::table.goes_forward());
    CHECK(request_server::table.goes_forward());
    CHECK(invite_client::table.is_over(invite_client::State::terminated));
    CHECK(request_client::table.is_over(request_client::State::terminated));
    CHECK(invite_server::table.is_over(invite_server::State::terminated));
    CHECK(request_server::table.is_over(request_server::State::terminated));
}

TEST_CASE("tables: what is forgotten, named twice or leads back is noticed") {
    const Table<S, E> forgotten({{S::one, E::go, S::two, Action::end}}, {{{S::two}, Set<E>::all()}});
    CHECK_FALSE(forgotten.is_complete());
    const Table<S, E> twice({{S::one, E::go, S::two, Action::end}},
                            {{{S::one}, Set<E>::all()}, {{S::two}, Set<E>::all()}});
    CHECK_FALSE(twice.is_complete());
    const Table<S, E> back({{S::one, E::go, S::two, Action::end}, {S::two, E::go, S::one, Action::end}},
                           {{{S::one, S::two}, {E::stay}}});
    CHECK(back.is_complete());
    CHECK_FALSE(back.goes_forward());
    CHECK_FALSE(back.is_over(S::two));
}

TEST_CASE("INVITE client: it repeats and gives up without a response") {
    Driver driver;
    const Id id = driver.start("INVITE", "z9hG4bKx");
    driver.advance(60);
    CHECK(driver.times() == std::vector<double>{0, 0.5, 1.5, 3.5, 7.5, 15.5, 31.5});
    CHECK(driver.ended_at(id) == 32.0);
    CHECK(driver.count(Kind::timed_out) == 1);
    CHECK(driver.engine.timers() == 0);
}

TEST_CASE("INVITE client: a refusal is acknowledged each time and delivered once") {
    Driver driver;
    const Id id = driver.start("INVITE", "z9hG4bKx", false, invite);
    for (int copy = 0; copy < 3; ++copy) {
        driver.respond_to("z9hG4bKx", 486);
        driver.advance(1);
    }
    CHECK(driver.count(Kind::response) == 1);
    CHECK(driver.count(Kind::absorbed) == 2);
    REQUIRE(driver.sent.size() == 4);
    CHECK(driver.sent[1].bytes.starts_with("ACK sip:b@h SIP/2.0\r\nVia: SIP/2.0/UDP a;branch=z9hG4bKx\r\n"));
    CHECK(driver.sent[1].bytes == driver.sent[3].bytes);
    driver.advance(60);
    CHECK(driver.ended_at(id) == 32.0);
}

TEST_CASE("INVITE client: every 2xx is delivered until timer M, and then it is a stray") {
    Driver driver;
    const Id id = driver.start("INVITE", "z9hG4bKx", false, invite);
    driver.respond_to("z9hG4bKx", 200);
    driver.advance(31.9);
    driver.respond_to("z9hG4bKx", 200);
    driver.respond_to("z9hG4bKx", 486);
    driver.advance(1);
    driver.respond_to("z9hG4bKx", 200);
    CHECK(driver.count(Kind::response) == 2);
    CHECK(driver.count(Kind::absorbed) == 1);
    CHECK(driver.count(Kind::stray) == 1);
    CHECK(driver.ended_at(id) == 32.0);
    CHECK(driver.sent.size() == 1);
}

TEST_CASE("INVITE client: cancelled, it ends without a final response after the timeout, once") {
    Driver driver;
    const Id id = driver.start("INVITE", "z9hG4bKx", false, invite);
    driver.respond_to("z9hG4bKx", 180);
    const Id cancel = driver.engine.cancel(id, "SIP;cause=200", driver.now_ns);
    REQUIRE(cancel != 0);
    CHECK(driver.engine.cancel(id, {}, driver.now_ns) == 0);
    CHECK(driver.engine.wire_of(cancel).starts_with("CANCEL sip:b@h SIP/2.0\r\n"));
    driver.advance(10);
    driver.engine.expire(id, driver.now_ns);
    driver.advance(60);
    CHECK(driver.ended_at(id) == 32.0);
    CHECK(driver.ended_at(cancel) == 32.0);
    CHECK(driver.count(Kind::timed_out) == 1);
    CHECK(driver.engine.clients() == 0);
}

TEST_CASE("INVITE client: one that has its final response, or is over, is not cancelled") {
    Driver driver;
    const Id id = driver.start("INVITE", "z9hG4bKx", false, invite);
    driver.respond_to("z9hG4bKx", 200);
    CHECK(driver.engine.cancel(id, {}, driver.now_ns) == 0);
    driver.advance(60);
    CHECK(driver.engine.cancel(id, {}, driver.now_ns) == 0);
    CHECK(driver.engine.cancel(driver.start("BYE", "z9hG4bKy"), {}, driver.now_ns) == 0);
}

TEST_CASE("INVITE client: abandoned it is silent and hears; it is wanted no more") {
    Driver driver;
    const Id id = driver.start("INVITE", "z9hG4bKx");
    CHECK(driver.engine.is_wanted(id));
    driver.engine.abandon(id, driver.now_ns);
    CHECK_FALSE(driver.engine.is_wanted(id));
    driver.advance(10);
    CHECK(driver.times() == std::vector<double>{0});
    CHECK(driver.respond_to("z9hG4bKx", 180).kind == Kind::response);
}

TEST_CASE("INVITE client: resumed, it rings until it is given up") {
    Driver driver;
    const Id id = driver.engine.resume_invite(invite, "z9hG4bKx", {});
    driver.advance(600);
    CHECK(driver.sent.empty());
    std::vector<Output> outputs;
    driver.engine.give_up(id, driver.now_ns, outputs);
    driver.take(outputs);
    CHECK(driver.count(Kind::ended) == 1);
    CHECK(driver.engine.clients() == 0);
}

TEST_CASE("INVITE client: a transport error ends it before a response, and after a refusal without a word") {
    for (const bool refused : {false, true}) {
        Driver driver;
        const Id id = driver.start("INVITE", "z9hG4bKx", true, invite);
        if (refused) driver.respond_to("z9hG4bKx", 486);
        std::vector<Output> outputs;
        driver.engine.fail_transport(id, driver.now_ns, outputs);
        driver.take(outputs);
        CHECK(driver.count(Kind::unsent) == !refused);
        CHECK(driver.count(Kind::ended) == refused);
    }
}

TEST_CASE("request client: it repeats up to T2; a provisional response makes it slow") {
    Driver driver;
    driver.start("BYE", "z9hG4bKx");
    driver.advance(60);
    CHECK(driver.times() == std::vector<double>{0, 0.5, 1.5, 3.5, 7.5, 11.5, 15.5, 19.5, 23.5, 27.5, 31.5});
    Driver slow;
    const Id id = slow.start("BYE", "z9hG4bKx");
    slow.respond_to("z9hG4bKx", 100, "BYE");
    slow.advance(60);
    CHECK(slow.times() == std::vector<double>{0, 0.5, 4.5, 8.5, 12.5, 16.5, 20.5, 24.5, 28.5});
    CHECK(slow.ended_at(id) == 32.0);
}

TEST_CASE("request client: the final response is delivered once, and over a stream it ends at once") {
    for (const bool reliable : {false, true}) {
        Driver driver;
        const Id id = driver.start("BYE", "z9hG4bKx", reliable);
        driver.respond_to("z9hG4bKx", 200, "BYE");
        driver.respond_to("z9hG4bKx", 200, "BYE");
        CHECK(driver.count(Kind::response) == 1);
        CHECK(driver.count(Kind::absorbed) == 1);
        driver.advance(60);
        CHECK(driver.ended_at(id) == (reliable ? 0.0 : 5.0));
    }
}

TEST_CASE("INVITE server: 100 when the user is slow, and the last response for a repetition") {
    Driver driver;
    const Id id = driver.request("INVITE", "z9hG4bKx").id;
    driver.advance(1);
    CHECK(driver.times() == std::vector<double>{0.2});
    CHECK(driver.request("INVITE", "z9hG4bKx").kind == Kind::repeated);
    driver.respond(id, 183, "183");
    driver.request("INVITE", "z9hG4bKx");
    REQUIRE(driver.sent.size() == 4);
    CHECK(driver.sent[1].bytes == "100");
    CHECK(driver.sent[3].bytes == "183");
}

TEST_CASE("INVITE server: 100 at once for a user of whom it is known that it is late, and only once") {
    Driver driver;
    const Id id = driver.request("INVITE", "z9hG4bKx").id;
    const std::string* const trying = driver.engine.try_now(id, driver.now_ns);
    REQUIRE(trying != nullptr);
    CHECK(*trying == "100");
    CHECK(driver.engine.try_now(id, driver.now_ns) == nullptr);
    driver.advance(1);
    CHECK(driver.sent.empty());
    driver.respond(id, 486, "486");
    CHECK(driver.engine.try_now(id, driver.now_ns) == nullptr);
    CHECK(driver.engine.try_now(driver.request("BYE", "z9hG4bKy").id, driver.now_ns) == nullptr);
    CHECK(driver.engine.try_now(99, driver.now_ns) == nullptr);
}

TEST_CASE("INVITE server: a refusal is repeated until its ACK, and nothing changes it") {
    Driver driver;
    const Id id = driver.request("INVITE", "z9hG4bKx").id;
    CHECK(driver.respond(id, 486, "486"));
    CHECK_FALSE(driver.respond(id, 200, "200"));
    driver.advance(4);
    CHECK(driver.request("ACK", "z9hG4bKx").kind == Kind::repeated);
    driver.advance(60);
    CHECK(driver.times() == std::vector<double>{0, 0.5, 1.5, 3.5});
    CHECK(driver.ended_at(id) == 9.0);
    CHECK(driver.engine.servers() == 0);
}

TEST_CASE("INVITE server: after a 2xx, repetitions are absorbed and an ACK with its branch is delivered") {
    Driver driver;
    const Id id = driver.request("INVITE", "z9hG4bKx").id;
    driver.respond(id, 200, "200");
    driver.request("INVITE", "z9hG4bKx");
    CHECK(driver.sent.size() == 1);
    CHECK(driver.respond(id, 200, "200"));
    CHECK(driver.request("ACK", "z9hG4bKx").kind == Kind::ack);
    driver.advance(60);
    CHECK(driver.ended_at(id) == 32.0);
}

TEST_CASE("request server: a repetition gets the same response until timer J, and nothing before it") {
    Driver driver;
    const Id id = driver.request("BYE", "z9hG4bKx").id;
    driver.request("BYE", "z9hG4bKx");
    CHECK(driver.sent.empty());
    driver.respond(id, 200, "200");
    driver.request("BYE", "z9hG4bKx");
    CHECK(driver.sent.size() == 2);
    CHECK_FALSE(driver.respond(id, 500, "500"));
    driver.advance(60);
    CHECK(driver.ended_at(id) == 32.0);
}

TEST_CASE("machines: whatever comes, no state goes back, users are told one end, and nothing is left") {
    std::mt19937 random(20261124);
    const std::uint16_t statuses[] = {100, 180, 200, 302, 486, 503, 603};
    for (int round = 0; round < 3000; ++round) {
        Driver driver;
        const bool reliable = random() % 2 != 0;
        const bool client = random() % 2 != 0;
        const std::string method = random() % 2 != 0 ? "INVITE" : "BYE";
        const Id id = client ? driver.start(method, "z9hG4bKx", reliable, invite)
                             : driver.request(method, "z9hG4bKx", true, reliable).id;
        for (int event = 0; event < 20; ++event) {
            const auto before = driver.engine.state_of(id);
            const std::uint16_t status = statuses[random() % std::size(statuses)];
            std::vector<Output> outputs;
            switch (random() % 6) {
                case 0:
                    driver.advance(static_cast<double>(random() % 40) / 4);
                    break;
                case 1:
                    driver.engine.fail_transport(id, driver.now_ns, outputs);
                    break;
                case 2:
                    driver.engine.give_up(id, driver.now_ns, outputs);
                    driver.engine.expire(id, driver.now_ns);
                    break;
                case 3:
                    driver.engine.abandon(id, driver.now_ns);
                    break;
                default:
                    if (client) {
                        driver.respond_to("z9hG4bKx", status, method);
                    } else if (random() % 2 != 0) {
                        driver.respond(id, status, "response");
                    } else {
                        driver.request(random() % 4 == 0 ? "ACK" : method, "z9hG4bKx", false, reliable);
                    }
            }
            driver.take(outputs);
            const auto after = driver.engine.state_of(id);
            CHECK((!after || !before || *after >= *before));
            CHECK((before || !after));
        }
        if (!client) driver.respond(id, 500, "500");
        if (client && method == "INVITE") driver.engine.expire(id, driver.now_ns);
        driver.advance(200);
        CHECK(driver.engine.timers() == 0);
        CHECK(driver.engine.clients() + driver.engine.servers() == 0);
        CHECK(driver.count(Kind::ended) + driver.count(Kind::timed_out) + driver.count(Kind::unsent) == 1);
    }
}
