//! The picture of a step to take: to the owner, while the question waits, and nothing else under that address.

use crate::acts::question;
use crate::world::World;
use std::fs;

/// Asks for a step, names a picture, and ends when it is told.
fn asks(picture: &str) -> String {
    let ask = format!(
        r#"{{"type":"INTERACTION","request_id":"q1","kind":"manual_action","message":"Agree.","timeout_seconds":60,"picture":{picture}}}"#
    );
    format!(
        "read start; echo '{ask}'; read answer; echo '{{\"type\":\"DONE\",\"status\":\"succeeded\",\"records_emitted\":0}}'; cat > /dev/null"
    )
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x02\0\0\0\x03\x08\x02\0\0\0 and the rest";

#[test]
fn a_picture_is_given_to_the_owner_while_its_question_waits_and_to_nobody_else() {
    let world = World::new();
    let run = world.begin("notes", &asks("\"action-1.png\""));
    let asked = question(&world);
    let folder = world.root().join("runs").join(asked["run_id"].as_str().unwrap());
    fs::create_dir_all(&folder).unwrap();
    let path = format!("/inbox/{}/picture", asked["id"]);
    let get = |path: &str| world.request("GET", path).send(world.address);
    assert_eq!(get(&path).status, 404, "the file is not there");
    fs::write(folder.join("action-1.png"), PNG).unwrap();
    let reply = get(&path);
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("image/png")));
    assert_eq!(reply.body, PNG);
    crate::world::has_every_header(&reply);
    assert_eq!(reply.header("content-disposition"), Some("inline; filename=\"question.png\""));
    assert!(get("/inbox").text().contains(&format!("src=\"{path}\"")));
    assert_eq!(world.bare("GET", &path).send(world.address).status, 401);
    for other in ["/inbox/0/picture", "/inbox/-1/picture", "/inbox/99/picture"] {
        assert_eq!(get(other).status, 404, "{other}");
    }
    assert_eq!(get("/inbox/x/picture").status, 400);
    fs::write(folder.join("action-1.png"), "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>").unwrap();
    assert_eq!(get(&path).status, 404, "a picture by its name alone");
    fs::write(folder.join("action-1.png"), PNG).unwrap();
    assert_eq!(get(&path).status, 200);
    world.act("POST", &format!("/api/v1/interactions/{}/answer", asked["id"]), r#"{"data":{"done":true}}"#);
    assert_eq!(run.reason(), "succeeded");
    assert_eq!(get(&path).status, 404, "nobody asks any more");
}

#[test]
fn a_name_that_leads_elsewhere_is_as_good_as_none() {
    let world = World::new();
    fs::write(world.root().join("secret.png"), PNG).unwrap();
    for picture in ["\"../../secret.png\"", "\"/etc/passwd\"", "\"a/../b.png\"", "7", "{\"a\":1}", "\"\"", "null"] {
        let run = world.begin("notes", &asks(picture));
        let asked = question(&world);
        let path = format!("/inbox/{}/picture", asked["id"]);
        assert_eq!(world.request("GET", &path).send(world.address).status, 404, "{picture}");
        let inbox = world.request("GET", "/inbox").send(world.address);
        assert!(inbox.text().contains("Agree.") && !inbox.text().contains("<img"), "{picture}");
        world.act("POST", &format!("/api/v1/interactions/{}/answer", asked["id"]), r#"{"declined":true}"#);
        assert_eq!(run.reason(), "succeeded", "{picture}");
    }
}
