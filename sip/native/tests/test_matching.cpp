#include <doctest/doctest.h>

#include <string>

#include "driver.hpp"

using namespace trunkline::signalling;

namespace {

RequestFields old_branch(std::string_view method) {
    RequestFields fields;
    fields.method = method;
    fields.branch = "1";
    fields.host = "h";
    fields.call_id = "c";
    fields.cseq = 1;
    fields.from_tag = "t";
    return fields;
}

}  // namespace

TEST_CASE("matching: a request by branch, sent-by and method (RFC 3261 17.2.3)") {
    Driver driver;
    const Id id = driver.request("INVITE", "z9hG4bKx").id;
    REQUIRE(id != 0);
    CHECK(driver.request("INVITE", "z9hG4bKx").id == id);
    CHECK(driver.request("ACK", "z9hG4bKx").id == id);
    CHECK(driver.request("BYE", "z9hG4bKx").kind == Kind::request);
    CHECK(driver.request("INVITE", "z9hG4bKX").kind == Kind::request);
    RequestFields other;
    other.method = "INVITE";
    other.branch = "z9hG4bKx";
    other.host = "H.Example";
    other.port = 5060;
    CHECK(driver.request(other).id == id);
    other.port = 5061;
    CHECK(driver.request(other, false).id == 0);
    other.port.reset();
    CHECK(driver.request(other, false).id == 0);
}

TEST_CASE("matching: a branch from before RFC 3261 needs more fields; none is no branch") {
    Driver driver;
    const Id first = driver.request(old_branch("INVITE")).id;
    CHECK(driver.request(old_branch("INVITE")).id == first);
    CHECK(driver.request(old_branch("ACK")).id == first);
    CHECK(driver.request(old_branch("CANCEL")).id == first);
    RequestFields other = old_branch("INVITE");
    other.call_id = "d";
    CHECK(driver.request(other, false).id == 0);
    other = old_branch("INVITE");
    other.cseq = 2;
    CHECK(driver.request(other, false).id == 0);
    other = old_branch("INVITE");
    other.from_tag = {};
    CHECK(driver.request(other, false).id == 0);
    other = old_branch("INVITE");
    other.branch.reset();
    CHECK(driver.request(other, false).id == 0);
}

TEST_CASE("matching: a CANCEL finds its INVITE and opens nothing; nor does an ACK") {
    Driver driver;
    CHECK(driver.request("CANCEL", "z9hG4bKx").id == 0);
    CHECK(driver.request("ACK", "z9hG4bKx").kind == Kind::ack);
    const Id id = driver.request("INVITE", "z9hG4bKx").id;
    const Verdict cancel = driver.request("CANCEL", "z9hG4bKx");
    CHECK(cancel.kind == Kind::cancel);
    CHECK(cancel.id == id);
    CHECK(driver.engine.servers() == 1);
}

TEST_CASE("matching: a response by branch and method; of others only a 2xx of an INVITE is told") {
    Driver driver;
    const Id id = driver.start("INVITE", "z9hG4bKx");
    CHECK(driver.respond_to("z9hG4bKy", 180).kind == Kind::ignored);
    CHECK(driver.respond_to("z9hG4bKx", 180, "OPTIONS").kind == Kind::ignored);
    CHECK(driver.respond_to("z9hG4bKy", 200).kind == Kind::stray);
    CHECK(driver.respond_to("z9hG4bKy", 200, "BYE").kind == Kind::ignored);
    CHECK(driver.respond_to("z9hG4bKx", 200, "INVITE", 2).kind == Kind::ignored);
    CHECK(driver.respond_to("z9hG4bKx", 180).id == id);
}

TEST_CASE("opening: not for who may not, and not beyond the limit") {
    Driver driver(2);
    CHECK(driver.request("INVITE", "z9hG4bK1", false).id == 0);
    CHECK(driver.request("INVITE", "z9hG4bK1").id != 0);
    CHECK(driver.request("BYE", "z9hG4bK2").id != 0);
    const Verdict beyond = driver.request("INVITE", "z9hG4bK3");
    CHECK(beyond.kind == Kind::request);
    CHECK(beyond.id == 0);
    CHECK(driver.request("INVITE", "z9hG4bK1").kind == Kind::repeated);
}

TEST_CASE("a released transaction leaves nothing, and its request is new again") {
    Driver driver;
    const Id id = driver.request("INVITE", "z9hG4bKx").id;
    driver.engine.release(id);
    driver.engine.release(id);
    CHECK(driver.engine.timers() == 0);
    CHECK(driver.engine.servers() == 0);
    const Verdict again = driver.request("INVITE", "z9hG4bKx");
    CHECK(again.kind == Kind::request);
    CHECK(again.id > id);
    driver.advance(1);
    CHECK(driver.sent.size() == 1);
}

TEST_CASE("commands to a transaction that is over do nothing") {
    Driver driver;
    std::vector<Output> outputs;
    CHECK_FALSE(driver.engine.respond(7, 200, "200", 0));
    CHECK(driver.engine.cancel(7, {}, 0) == 0);
    driver.engine.abandon(7, 0);
    driver.engine.expire(7, 0);
    driver.engine.give_up(7, 0, outputs);
    driver.engine.fail_transport(7, 0, outputs);
    driver.engine.keep_trying(7, "100");
    driver.engine.set_flow(7, {});
    CHECK(outputs.empty());
    CHECK_FALSE(driver.engine.is_wanted(7));
    CHECK_FALSE(driver.engine.state_of(7));
    CHECK(driver.engine.flow_of(7) == nullptr);
    CHECK(driver.engine.wire_of(7).empty());
}

TEST_CASE("a repetition moves the transaction to its flow, and keeps the timers of the first") {
    Driver driver;
    const Id id = driver.request("INVITE", "z9hG4bKx", true, true).id;
    driver.respond(id, 486, "486");
    Flow flow;
    flow.socket = 3;
    RequestFields fields;
    fields.method = "INVITE";
    fields.branch = "z9hG4bKx";
    fields.host = "h.example";
    fields.port = 5060;
    const Verdict repeated = driver.engine.take_request(fields, flow, Opening::if_room, driver.now_ns);
    REQUIRE(repeated.flow != nullptr);
    CHECK(repeated.flow->socket == 3);
    driver.advance(10);
    CHECK(driver.sent.size() == 1);
}

TEST_CASE("a branch that is used again replaces what had it") {
    Driver driver;
    const Id first = driver.start("INVITE", "z9hG4bKx");
    const Id second = driver.start("INVITE", "z9hG4bKx");
    CHECK_FALSE(driver.engine.state_of(first));
    CHECK(driver.respond_to("z9hG4bKx", 180).id == second);
    CHECK(driver.engine.clients() == 1);
    driver.advance(0);
    CHECK(driver.ended_at(first) == 0.0);
}

TEST_CASE("cleared, an engine has forgotten everything") {
    Driver driver;
    driver.start("INVITE", "z9hG4bKx");
    driver.request("INVITE", "z9hG4bKy");
    driver.engine.clear();
    CHECK(driver.engine.clients() + driver.engine.servers() + driver.engine.timers() == 0);
    driver.advance(60);
    CHECK(driver.sent.size() == 1);
}
