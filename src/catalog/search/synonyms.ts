import { tokenize } from "./tokenize.js";

/** General words that mean nearly the same for tools, one group per line. */
const GROUPS = `
create make add new insert generate build
delete remove drop erase clear destroy
update edit modify change set patch alter
get fetch retrieve read show view obtain
list enumerate all
search find query lookup look
send post submit deliver
run execute invoke launch
start begin open
stop end close terminate halt
file document
folder directory
picture image photo
movie film video
email mail message
chat conversation message
issue ticket bug
repository repo
weather forecast temperature
price cost quote
stock share ticker equity
map location place geocode
route direction navigation
calendar event meeting schedule appointment
user account member
person people contact
website web page site url
translate translation language
convert transform
download fetch
upload put
chart graph plot diagram visualization
table sheet spreadsheet
database sql
buy purchase order
flight airline
hotel accommodation lodging
news article headline
paper publication research
song music track
recipe food dish meal
money currency exchange
count number total
remember memory store save
note memo
task todo
job position vacancy career
shop store product
picture screenshot capture
check verify validate
presentation slide ppt powerpoint pptx
spreadsheet excel xlsx workbook csv
word docx document
command shell terminal bash process
crypto cryptocurrency bitcoin coin
wiki wikipedia encyclopedia
kid child children
learn study education course
exercise workout fitness
movie cinema show
health medical doctor symptom
law legal
car vehicle auto
travel trip tour vacation
restaurant eat dining food
game play gaming
code program script source
log history record
branch commit git
merge combine join
compress zip archive
resize scale crop
sum add total calculate compute
random shuffle pick choose
summarize summary abstract digest
explain describe
analyze analysis analytics insight
compare comparison difference diff
reply answer respond comment
invite add member
approve accept confirm
assign allocate
label tag
pause suspend
cancel abort
monitor watch track
alert notification notify reminder
secret password credential key
permission role access
cluster kubernetes k8s
container docker
cloud azure aws
domain dns whois
certificate ssl tls
`;

/** Synonyms by stemmed word. */
export const SYNONYMS: ReadonlyMap<string, readonly string[]> = readGroups();

function readGroups(): Map<string, string[]> {
  const synonyms = new Map<string, Set<string>>();
  for (const line of GROUPS.trim().split("\n")) {
    const words = line.split(" ").flatMap((word) => tokenize(word).slice(0, 1));
    for (const word of words) {
      const others = synonyms.get(word) ?? new Set<string>();
      for (const other of words) if (other !== word) others.add(other);
      synonyms.set(word, others);
    }
  }
  return new Map([...synonyms].map(([word, others]) => [word, [...others]]));
}
